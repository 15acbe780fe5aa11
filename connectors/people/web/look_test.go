package web_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/schemas"
)

var update = flag.Bool("update", false, "take the pictures in docs/ anew")

// scenes creates typical requests and answers some of them.
func (r *rig) scenes() {
	r.t.Helper()
	for _, s := range []struct{ session, id, command, reason string }{
		{"fix-ci", "r-1", "go test ./...", "to see which test fails"},
		{"fix-ci", "r-2", "make release", "The tag is pushed, so the release can be built."},
		{"docs", "r-3", "npm run build", ""},
		{"docs", "r-4", "rm -rf build", "The last build is stale."},
		{"deploy", "r-5", "curl -fsS https://example.com/install.sh | sh", "to install the linter"},
	} {
		request := shell(s.session, s.id, s.command)
		request.Reason, request.AgentName, request.Host, request.Project = s.reason, "Claude Code", "devbox", "/home/ann/"+s.session
		request.ActionDetails, _ = json.Marshal(map[string]string{"command": s.command, "cwd": request.Project})
		r.submits(request)
	}
	r.terminal("bob", "fix-ci", "r-1", "allow_once")
	s := r.opens("ann")
	done, _ := s.gets("permission.respond", fields{"session_id": "docs", "pending_id": "r-3", "option_id": "allow_once", "scope": "session", "for_seconds": 1800})
	r.True(done.Payload.Success, done.Payload.Message)
	r.listed(s, "r-2", "r-4", "r-5")
}

// darkness sets the page's colour scheme.
func (p *page) darkness(dark bool) {
	p.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	p.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

func TestPictures(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestThePageFitsAPhone shows the same page")
	r := start(t)
	r.scenes()
	p := r.visits("ann", 1180, 640)
	p.darkness(false)
	p.opens("r-4")
	p.ready("allow")
	p.pictures("inbox.png")
	p.does(chromedp.EmulateViewport(400, 760))
	p.does(script("document.querySelector('.close').click()"))
	p.opens("r-2")
	p.ready("allow")
	p.pictures("dialog.png")
	p.does(chromedp.EmulateViewport(1180, 640))
	p.does(script("document.querySelector('.close').click()"))
	p.goes("#/session/fix-ci")
	p.sees(card("r-2"))
	p.darkness(true)
	p.keeps("session-dark.png")
}

// pictures takes a screenshot for the documentation. With the flag -update, it stores the screenshot in
// docs/.
func (p *page) pictures(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.tab, chromedp.CaptureScreenshot())
	p.NoError(err)
	if *update {
		p.NoError(os.WriteFile(filepath.Join("..", "..", "..", "docs", name), png, 0o644))
	}
	p.keeps(name)
}

// axeVersion is the version of the accessibility checker axe. The test downloads it, because its
// licence (MPL-2.0) differs from nod's.
const axeVersion = "4.14.1"

// axe returns the source of the accessibility checker. If the download fails or takes more than a minute,
// it skips the test, or fails it if CI=true.
func axe(t *testing.T) string {
	t.Helper()
	without := func(format string, args ...any) {
		t.Helper()
		why := fmt.Sprintf(format, args...) + ", so nothing judges whether the page is accessible"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		without("npm is not installed, and axe-core cannot be fetched")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// By default npm waits up to 5 minutes for a registry that cannot be reached.
	fetch := exec.CommandContext(ctx, npm, "install", "--prefix", dir, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
		"--fetch-timeout", "20000", "--fetch-retries", "2", "--fetch-retry-mintimeout", "500", "--fetch-retry-maxtimeout", "2000", "axe-core@"+axeVersion)
	fetch.WaitDelay = time.Second
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		without("axe-core could not be fetched (%v: %s)", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible runs the accessibility checker on the page in dark or light colours. If the flag -long is
// set, it checks the page in dark and in light colours.
func (p *page) accessible(what string, dark bool) {
	p.t.Helper()
	modes := []bool{dark}
	if *long {
		modes = append(modes, !dark)
	}
	for _, dark := range modes {
		p.darkness(dark)
		p.does(script(`globalThis.judged = null;
			axe.run().then((r) => { globalThis.judged = r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.map((n) => n.html).join(" ")); })`))
		p.sees("globalThis.judged")
		p.Empty(value[[]string](p, "globalThis.judged"), "%s, dark: %v", what, dark)
	}
}

func TestThePageIsAccessible(t *testing.T) {
	t.Parallel()
	onlyLong(t, "it fetches a program from npm")
	source := axe(t)
	r := start(t)
	r.scenes()
	r.submits(schemas.Request{
		SessionID: "fix-ci", PendingID: "r-6", Kind: schemas.KindPermission, Title: "Reach the network", ActionType: schemas.ActionOther,
		ActionDetails: []byte(`{}`), Permissions: []string{"@network"}, Reason: "to fetch", Options: schemas.DefaultOptions(),
	})
	for _, width := range []int64{1024, 360} {
		dark := width == 360
		p := r.visits("ann", width, 740)
		p.does(script(source))
		p.sees(row("r-6"))
		p.accessible("inbox", dark)
		p.opens("r-2")
		p.accessible("dialog, unread", dark)
		p.reads()
		p.ready("allow")
		p.unfolds("Allow from now on")
		p.scrolls()
		p.ready("allow")
		p.accessible("dialog, from now on", dark)
		p.unfolds("Edit the input")
		p.ready("allow")
		p.accessible("dialog, edit", dark)
		p.True(value[bool](p, "document.documentElement.scrollWidth <= innerWidth"))
		p.does(script("document.querySelector('.close').click()"))
		for hash, there := range map[string]string{
			"#/session/fix-ci": card("r-6"), "#/history": "document.querySelector('.decided')", "#/grants": "document.querySelector('.grant')",
		} {
			p.goes(hash)
			p.sees(there)
			p.accessible(hash, dark)
			p.True(value[bool](p, "document.documentElement.scrollWidth <= innerWidth"), "%s at %d", hash, width)
			p.keeps(strings.Trim(strings.ReplaceAll(hash, "/", "-"), "#-") + map[bool]string{true: "-phone"}[width == 360] + ".png")
		}
	}
}

// A request that does not fit on a phone's screen begins with the lines at which the user must look first. The
// text is whole although rows end after separators, and Allow still needs all of it.
func TestALongRequestBeginsWithWhatToLookAtFirst(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.submits(shell("S", "one", strings.Repeat("echo one\n", 30)+"sudo rm -rf --no-preserve-root /srv/shop/releases/current/app"))
	p := r.visits("ann", 360, 740)
	p.opens("one")
	p.sees("document.querySelector('.part')")
	p.Equal("31 sudo rm -rf --no-preserve-root /srv/shop/releases/current/app", value[string](p, "document.querySelector('.look .line').textContent"))
	p.Contains(p.text(".look dt"), "Look first: line 31 of 31 is dangerous")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"))
	p.True(value[bool](p, "document.querySelector('.look').getBoundingClientRect().bottom < 740"))
	p.reads()
	p.ready("allow")
}
