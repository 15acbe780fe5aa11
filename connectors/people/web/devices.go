package web

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/nodbus/nod/schemas"
)

const (
	devicesName = "push.json"
	maxDevices  = 256
	maxOwn      = 8 // the largest number of devices per user
)

// services are the hosts of the browsers' push services. nod sends pushes only to these hosts, even if a
// page subscribes with another host. A name with a leading dot matches all hosts of that domain.
var services = []string{"fcm.googleapis.com", "updates.push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"}

// device is a browser that gets pushes until its login session ends.
type device struct {
	webpush.Subscription
	Key     string `json:"key"` // nod's public key at the time of the subscription
	Session token  `json:"session"`

	notified  time.Time // the time of the subscription or of the last push; requests that were due earlier need no push
	notBefore time.Time // the earliest time of the next push to this device
	failures  int       // the number of failed pushes since the last successful push
}

// devices stores the subscribed devices in a file. Their delivery state (notified, notBefore,
// failures) is only in memory.
type devices struct {
	path string

	mu    sync.Mutex
	known []device
}

func openDevices(dir string) (*devices, error) {
	d := &devices{path: filepath.Join(dir, devicesName)}
	var err error
	d.known, err = d.read()
	return d, err
}

// read reads the devices from the file, which other gateways may have changed. It keeps the delivery
// state that is in memory.
func (d *devices) read() (known []device, err error) {
	data, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read the devices that get notifications: %w: remove %s, and each device subscribes again when it is used", err, d.path)
	}
	for i := range known {
		if j := slices.IndexFunc(d.known, func(o device) bool { return o.Endpoint == known[i].Endpoint }); j >= 0 {
			known[i].notified, known[i].notBefore, known[i].failures = d.known[j].notified, d.known[j].notBefore, d.known[j].failures
		}
	}
	return known, nil
}

func (d *devices) all() []device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.known)
}

// add stores a device, and replaces an older entry for the same endpoint. If the user already has
// maxOwn devices, it removes the oldest of them. If there are maxDevices devices, it returns
// UNAVAILABLE.
func (d *devices) add(n device) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, err := d.read()
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(o device) bool {
		if o.Endpoint == n.Endpoint {
			n.notBefore = o.notBefore
		}
		return o.Endpoint == n.Endpoint
	})
	own := func(o device) bool { return o.Session.User == n.Session.User }
	if count(known, own) >= maxOwn {
		i := slices.IndexFunc(known, own)
		known = slices.Delete(known, i, i+1)
	}
	if len(known) >= maxDevices {
		return schemas.Errorf(schemas.CodeUnavailable, "too many devices get notifications: turn them off on another device")
	}
	return d.save(append(known, n))
}

func count(all []device, is func(device) bool) (n int) {
	for _, o := range all {
		if is(o) {
			n++
		}
	}
	return n
}

// remove removes every device for which the function match returns true.
func (d *devices) remove(match func(*device) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, err := d.read()
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(before), func(o device) bool { return match(&o) })
	if d.known = known; len(known) == len(before) {
		return nil
	}
	return d.save(known)
}

// update changes the delivery state of the device with this endpoint. If there is no such device, it
// does nothing.
func (d *devices) update(endpoint string, change func(*device)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.known {
		if d.known[i].Endpoint == endpoint {
			change(&d.known[i])
		}
	}
}

func (d *devices) save(known []device) error {
	data, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode the devices: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(d.path), ".push-*") // CreateTemp makes the file with mode 0600
	if err != nil {
		return fmt.Errorf("store the devices that get notifications: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), d.path)
	}
	if err != nil {
		return fmt.Errorf("store the devices that get notifications: %w", err)
	}
	d.known = known
	return nil
}

// checkDevice returns a VALIDATION_ERROR for a subscription that no browser would send: with an
// unknown push service, or without usable keys.
func checkDevice(s *webpush.Subscription) error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.User != nil || len(s.Endpoint) > 2048 || !isService(u.Host) {
		return schemas.Errorf(schemas.CodeValidation, "subscription.endpoint: not a push service that nod knows")
	}
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	auth, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.Auth, "="))
	if err != nil || err2 != nil || len(auth) != 16 {
		return schemas.Errorf(schemas.CodeValidation, "subscription.keys: not the keys of a push subscription")
	}
	return nil
}

func isService(host string) bool {
	return slices.ContainsFunc(services, func(s string) bool {
		return host == s || strings.HasPrefix(s, ".") && strings.HasSuffix(host, s)
	})
}

// host returns the host of an endpoint for the log. The rest of the URL is a secret.
func host(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil {
		return u.Host
	}
	return ""
}

// handlePush handles the actions about pushes for the device that shows the page. Each reply contains
// nod's public key.
func (c *client) handlePush(m clientMessage, a actionPayload) {
	var err error
	switch m.Action {
	case "push.subscribe":
		if err = checkDevice(&a.Subscription); err == nil {
			err = c.pushes.add(a.Subscription, c.session)
		}
	case "push.unsubscribe":
		err = c.pushes.list.remove(func(d *device) bool { return d.Endpoint == a.Subscription.Endpoint && d.Session.User == c.user })
	}
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	c.reply(m, pushReply{PublicKey: c.pushes.key.public})
}
