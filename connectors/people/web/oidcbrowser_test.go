package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/web"
)

// arrives opens the inbox in a new window, without a login link.
func (c *company) arrives(width, height int64) *page {
	c.t.Helper()
	tab, cancel := chromedp.NewContext(headless.running(c.t), chromedp.WithNewBrowserContext())
	c.t.Cleanup(cancel)
	context.AfterFunc(c.ctx, cancel)
	p := &page{c.rig, tab}
	p.does(focused, chromedp.EmulateViewport(width, height), chromedp.Navigate(c.web.URL()+"/#/history"))
	p.sees("!document.querySelector('button.login').hidden")
	return p
}

func TestTheLoginButton(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAPersonLogsInAtTheIssuer is the same without a browser")
	c := startCompany(t)
	c.rig = c.oidcGateway(100*time.Millisecond, 2*time.Second)
	p := c.arrives(1440, 900)
	p.Equal("Log in with Acme", p.text("button.login"))
	for _, width := range []int64{360, 768, 1440} {
		p.does(chromedp.EmulateViewport(width, 800))
		p.True(value[bool](p, "document.documentElement.scrollWidth <= innerWidth"))
		p.keeps(fmt.Sprintf("login-%d.png", width))
	}
	p.does(script("document.querySelector('button.login').click()"))
	p.sees("document.querySelector('.user').innerText === 'Ann (s-ann)' && document.querySelector('.state').hidden")
	p.Equal("#/history", value[string](p, "location.hash"), "the login returns to the view")
	p.Empty(value[string](p, "location.search"))
	p.Empty(value[string](p, "document.cookie"), "scripts see no cookie")

	c.issuer.change(func() { c.issuer.down = true })
	p.sees("document.querySelector('.state').innerText.includes('nod cannot ask about your login')")
	p.keeps("login-down.png")
	c.issuer.change(func() { c.issuer.down = false })
	p.sees("document.querySelector('.state').hidden")

	c.issuer.says("groups", []any{"staff"})
	p.sees("document.querySelector('.state').innerText.includes('is in no group that may answer')")
	p.does(chromedp.Navigate(c.web.URL() + "/login/oidc/callback?state=x&code=y"))
	p.sees("document.querySelector('h1').innerText === 'Not logged in'")
	p.keeps("login-refused.png")
}

// A person can log in at oidc-provider, a certified issuer. The login follows changes of the person's
// groups, and ends with the account.
func TestALoginAtOIDCProvider(t *testing.T) {
	if os.Getenv("NOD_OIDC_TEST_NPM") == "" {
		t.Skip("it needs npm and the network: NOD_OIDC_TEST_NPM=1 go test ./connectors/people/web -run OIDCProvider")
	}
	t.Parallel()
	c := startCompany(t)
	c.rig = c.oidcGateway(time.Second, 0)
	modules := peopletest.Packages(t, "oidc-provider@9.13.3")
	node := exec.Command("node", "testdata/issuer.mjs", modules, c.web.URL()+"/login/oidc/callback", c.web.URL()+"/")
	node.Env, node.Stderr = append(os.Environ(), "SECRET="+clientSecret), os.Stderr
	out, err := node.StdoutPipe()
	c.NoError(err)
	c.NoError(node.Start())
	t.Cleanup(func() { _ = node.Process.Kill(); _ = node.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	c.NoError(err)
	issuer, control, _ := strings.Cut(strings.TrimSpace(line), " ")
	owner := connector.NewOwner(c.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err = owner.ApplySettings(c.ctx, withIssuer(c.rig, issuer, "", ""))
	c.NoError(err)
	account := func(v any) {
		data, err := json.Marshal(map[string]any{"id": "s-ann", "account": v})
		c.NoError(err)
		resp, err := http.Post(control, "application/json", strings.NewReader(string(data)))
		c.NoError(err)
		c.NoError(resp.Body.Close())
	}

	requireAccepted(t, issuer, c.web.URL())
	for n, r := range map[int][]string{1: {clientID, clientSecret, inboxURL}, 2: {clientID, "another", c.web.URL()}} {
		c.Error(examined(t, issuer, r[0], r[1], r[2])[n].Err)
	}
	p := c.arrives(1440, 900)
	enter := func() {
		p.does(script("document.querySelector('button.login').click()"))
		p.sees("document.querySelector('[name=login]')")
		p.does(script("document.querySelector('[name=login]').value = 's-ann'; document.querySelector('[name=password]').value = 'x'; document.querySelector('form').submit()"))
		p.sees("document.querySelector('[name=prompt]').value === 'consent'")
		p.does(script("document.querySelector('form').submit()"))
		p.sees("document.querySelector('.user').innerText === 'Ann (s-ann)' && document.querySelector('.state').hidden")
	}
	enter()
	for range 3 { // the gateway gets a new refresh token with each check
		<-time.After(1200 * time.Millisecond)
		p.sees("document.querySelector('.state').hidden")
	}
	account(map[string]any{"name": "Ann", "groups": []string{"staff"}})
	p.sees("document.querySelector('.state').innerText.includes('is in no group that may answer')")
	account(map[string]any{"name": "Ann", "groups": []string{"nod-ops"}})
	p.sees("(await fetch('/whoami')).ok")
	p.does(chromedp.Reload())
	p.sees("document.querySelector('.user').innerText === 'Ann (s-ann)' && document.querySelector('.state').hidden")
	account(nil) // disable the account
	p.sees("document.querySelector('.state').innerText.includes('your login has ended')")
}
