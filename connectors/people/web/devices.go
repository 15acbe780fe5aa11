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
	maxOwn      = 8 // of one person
)

// services are the push services of browsers: nod sends to no other host that a
// page may name. A name that begins with a dot is that of all hosts below it.
var services = []string{"fcm.googleapis.com", "updates.push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"}

// device is a browser that asked to be told that something waits, for as long as
// its session lasts.
type device struct {
	webpush.Subscription
	Key     string `json:"key"` // of nod's, that it subscribed with
	Session pass   `json:"session"`

	told  time.Time // it knows of what was waiting then
	rest  time.Time // it is let alone until then
	tries int
}

// devices keeps them in a file.
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

// read is what is in the file, to which another gateway may write as well.
func (d *devices) read() (known []device, err error) {
	data, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read which devices are told that something waits: %w: remove %s, and they ask again when they are used", err, d.path)
	}
	for i := range known {
		if j := slices.IndexFunc(d.known, func(o device) bool { return o.Endpoint == known[i].Endpoint }); j >= 0 {
			known[i].told, known[i].rest, known[i].tries = d.known[j].told, d.known[j].rest, d.known[j].tries
		}
	}
	return known, nil
}

func (d *devices) all() []device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.known)
}

// add takes a device in, in the place of what was known of it. Of too many of one
// person's the oldest goes.
func (d *devices) add(n device) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, err := d.read()
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(o device) bool {
		if o.Endpoint == n.Endpoint {
			n.rest = o.rest
		}
		return o.Endpoint == n.Endpoint
	})
	own := func(o device) bool { return o.Session.User == n.Session.User }
	if count(known, own) >= maxOwn {
		i := slices.IndexFunc(known, own)
		known = slices.Delete(known, i, i+1)
	}
	if len(known) >= maxDevices {
		return schemas.Errorf(schemas.CodeUnavailable, "too many devices are told that something waits: stop it on one")
	}
	return d.keep(append(known, n))
}

func count(all []device, is func(device) bool) (n int) {
	for _, o := range all {
		if is(o) {
			n++
		}
	}
	return n
}

// drop forgets those who are to go.
func (d *devices) drop(goes func(*device) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, err := d.read()
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(before), func(o device) bool { return goes(&o) })
	if d.known = known; len(known) == len(before) {
		return nil
	}
	return d.keep(known)
}

// mark notes how a device fared, where it is still there.
func (d *devices) mark(endpoint string, note func(*device)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.known {
		if d.known[i].Endpoint == endpoint {
			note(&d.known[i])
		}
	}
}

// keep writes the file whole or not at all.
func (d *devices) keep(known []device) error {
	data, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode the devices: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(d.path), ".push-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep which devices are told that something waits: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), d.path)
	}
	if err != nil {
		return fmt.Errorf("keep which devices are told that something waits: %w", err)
	}
	d.known = known
	return nil
}

// checkDevice refuses what no browser would send.
func checkDevice(s *webpush.Subscription) error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.User != nil || len(s.Endpoint) > 2048 || !isService(u.Host) {
		return schemas.Errorf(schemas.CodeValidation, "subscription.endpoint: is not at a push service that nod knows of")
	}
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	auth, err2 := base64.RawURLEncoding.DecodeString(strings.TrimRight(s.Keys.Auth, "="))
	if err != nil || err2 != nil || len(auth) != 16 {
		return schemas.Errorf(schemas.CodeValidation, "subscription.keys: are not those of a push subscription")
	}
	return nil
}

func isService(host string) bool {
	return slices.ContainsFunc(services, func(s string) bool {
		return host == s || strings.HasPrefix(s, ".") && strings.HasSuffix(host, s)
	})
}

// host is all of an endpoint that may be told.
func host(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil {
		return u.Host
	}
	return ""
}

// device answers what a page asks about the device that it is on.
func (c *client) device(m received, a asked) {
	var err error
	switch m.Action {
	case "push.subscribe":
		if err = checkDevice(&a.Subscription); err == nil {
			err = c.pushes.add(a.Subscription, c.session)
		}
	case "push.unsubscribe":
		err = c.pushes.list.drop(func(d *device) bool { return d.Endpoint == a.Subscription.Endpoint && d.Session.User == c.user })
	}
	if err != nil {
		c.fail(m, failed(err))
		return
	}
	c.answer(m, pushing{PublicKey: c.pushes.key.public})
}
