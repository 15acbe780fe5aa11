package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// pushes returns a rig with another inbox, which stores its files in dataDir and sends its pushes to
// s.
func (r *rig) pushes(s *pushService, dataDir string) *rig {
	r.t.Helper()
	return r.another(func(o *web.Options) { o.Push, o.DataDir = s.client(), dataDir })
}

// notifies subscribes a device.
func (s *socket) notifies(service *pushService, device string) {
	s.t.Helper()
	shown, _ := s.gets("push.show", nil)
	service.signer = shown.Payload.PublicKey
	reply, _ := s.gets("push.subscribe", fields{"subscription": service.subscription(device)})
	s.Equal("response", reply.Type, reply.Payload.Message)
}

// told waits for the next push.
func (r *rig) told(s *pushService) push {
	r.t.Helper()
	select {
	case p := <-s.pushes:
		r.NoError(p.refused)
		return p
	case <-r.ctx.Done():
		r.Fail("no push came")
		return push{}
	}
}

// devices returns the devices that an inbox has stored.
func (r *rig) devices(dataDir string) []string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(dataDir, "web", "push.json"))
	if os.IsNotExist(err) {
		return nil
	}
	r.NoError(err)
	var all []struct{ Endpoint string }
	r.NoError(json.Unmarshal(data, &all))
	var names []string
	for _, d := range all {
		names = append(names, filepath.Base(d.Endpoint))
	}
	return names
}

// A push says that a request is pending. It contains no text about the request.
func TestAPushContainsNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	r, service, dir := start(t), newPushService(t), t.TempDir()
	g := r.pushes(service, dir)
	service.gone["lost"] = true
	ann, bob := g.opens("ann"), g.opens("bob")
	ann.notifies(service, "phone")
	bob.notifies(service, "lost")
	r.asks("S", "one", `{"to":"production"}`)
	got := []push{g.told(service), g.told(service)}
	for _, p := range got {
		r.Equal("something waits", p.text)
	}
	r.ElementsMatch([]string{"phone", "lost"}, []string{got[0].device, got[1].device})
	r.Eventually(func() bool { return slices.Equal([]string{"phone"}, r.devices(dir)) }, time.Minute, 10*time.Millisecond, "what has gone is forgotten")

	ann.refused(schemas.CodeValidation, "push.subscribe", fields{"subscription": fields{"endpoint": "https://evil.example/x"}})
	bob.gets("push.unsubscribe", fields{"subscription": service.subscription("phone")})
	r.Equal([]string{"phone"}, r.devices(dir), "a user cannot stop another's")
	ann.gets("push.unsubscribe", fields{"subscription": service.subscription("phone")})
	r.Empty(r.devices(dir))
}

func TestAPushIsDelayedWhileAnApproverHoldsTheLock(t *testing.T) {
	t.Parallel()
	r, service := start(t), newPushService(t)
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"notify_after_seconds": 2`))
	r.NoError(err)
	g := r.pushes(service, t.TempDir())
	ann := g.opens("ann")
	ann.notifies(service, "phone")
	lock, _ := ann.gets("session.lock.acquire", fields{"session_id": "S"})
	r.True(lock.Payload.Granted)
	before := time.Now()
	r.asks("S", "one", `{}`)
	r.Equal("phone", g.told(service).device)
	r.GreaterOrEqual(time.Since(before), 2*time.Second)
}

// After a restart, an inbox still sends pushes to its devices, until their user logs out.
func TestDevicesOutliveARestartButNotALogout(t *testing.T) {
	t.Parallel()
	r, service, dir := start(t), newPushService(t), t.TempDir()
	first := r.pushes(service, dir)
	session := first.login("ann")
	s, _, err := first.dials(with(session))
	r.NoError(err)
	s.notifies(service, "phone")
	r.NoError(s.conn.CloseNow())
	r.NoError(first.web.Server.Stop(context.Background()))
	r.asks("S", "one", `{}`) // no device gets a push, because no inbox is running
	again := r.pushes(service, dir)
	r.Equal("phone", again.told(service).device)

	tablet := again.opens("ann")
	tablet.notifies(service, "tablet")
	r.Equal([]string{"phone", "tablet"}, r.devices(dir))
	out := again.does("POST", "/logout", "", func(req *http.Request) {
		c := again.login("ann") // this login only finds out the cookie's name, which depends on the inbox's address
		req.AddCookie(&http.Cookie{Name: c.Name, Value: session.Value})
	})
	r.Equal(http.StatusNoContent, out.status)
	r.Equal([]string{"tablet"}, r.devices(dir))
}

// installs makes the page act as an installed web app that may show notifications. A test cannot
// reach a real push service, so the page subscribes to the test's own service.
func (p *page) installs(service *pushService) {
	p.t.Helper()
	subscription, err := json.Marshal(service.subscription("phone"))
	p.NoError(err)
	p.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted, Origin: p.web.URL(),
			BrowserContextID: chromedp.FromContext(p.tab).BrowserContextID,
		})
		return err
	}), script(`
		const media = globalThis.matchMedia;
		globalThis.matchMedia = (query) => query === "(display-mode: standalone)" ? { matches: true } : media(query);
		globalThis.standIn = null;
		PushManager.prototype.getSubscription = async () => globalThis.standIn;
		PushManager.prototype.subscribe = async (options) => {
			globalThis.asked = options;
			return globalThis.standIn = { options: {}, toJSON: () => (`+string(subscription)+`), unsubscribe: async () => { globalThis.standIn = null; return true; } };
		};
		document.querySelector("nod-push").load()`))
}

func TestTheInstalledPageNotifies(t *testing.T) {
	t.Parallel()
	onlyLong(t, "it starts a full browser, and TestAPushContainsNothingOfTheRequest checks the pushes")
	r, service, dir := start(t), newPushService(t), t.TempDir()
	g := r.pushes(service, dir)
	p := g.visitsIn(whole, "ann", 390, 844)
	p.sees("document.querySelector('nod-push').hidden") // a page in a browser tab does not offer notifications
	p.does(script("(async () => { globalThis.manifest = await (await fetch(document.querySelector('link[rel=manifest]').href)).json(); })()"))
	p.sees("globalThis.manifest?.display === 'standalone'")
	p.installs(service)
	p.sees("document.querySelector('nod-push button').textContent === 'Notify me'")
	p.does(script("document.querySelector('nod-push button').click()"))
	p.sees("document.querySelector('nod-push button').textContent === 'Stop notifications'")
	p.True(value[bool](p, "globalThis.asked.userVisibleOnly"))
	service.signer = value[string](p, "globalThis.asked.applicationServerKey")
	r.asks("S", "one", `{"to":"production"}`)
	text := g.told(service).text

	// The browser gives the push to the page's service worker.
	p.delivers(text)
	p.sees("globalThis.shown?.length === 1")
	p.Equal("nod: Something waits for an answer.", value[string](p, "globalThis.shown[0].title + ': ' + globalThis.shown[0].body"))

	p.does(script("document.querySelector('nod-push button').click()"))
	p.sees("document.querySelector('nod-push button').textContent === 'Notify me'")
	r.Empty(r.devices(dir))
}

// delivers gives a push to the page's service worker. From then on, the page stores its notifications
// in globalThis.shown.
func (p *page) delivers(text string) {
	p.t.Helper()
	ids := make(chan serviceworker.RegistrationID, 100)
	p.NoError(chromedp.Listen(p.tab, func(event any) {
		if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				ids <- r.RegistrationID
			}
		}
	}))
	p.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, serviceworker.Enable, cdp.Empty{}); err != nil {
			return err
		}
		select {
		case id := <-ids:
			_, err := cdp.Call(ctx, t, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: p.web.URL(), RegistrationID: id, Data: text})
			return err
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}), script(`setInterval(async () => {
		const worker = await navigator.serviceWorker.ready;
		globalThis.shown = (await worker.getNotifications()).map(({ title, body }) => ({ title, body }));
	}, 50)`))
}
