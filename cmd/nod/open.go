package main

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people/web"
)

type openCmd struct {
	loginKeyFlag
}

// Run opens the web inbox in the browser and logs this user in. The login link is in a file that only
// this user can read, because the list of processes shows a program's arguments to every user.
func (c *openCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if _, err := bus.ReadRun(place.DataDir); err != nil {
		return err
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find this user's name: %w", err)
	}
	link, err := web.Link(place.DataDir, c.LoginKey, u.Username)
	if err != nil {
		return err
	}
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	page := filepath.Join(dir, "web", "open.html")
	at := html.EscapeString(link)
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>nod</title><meta http-equiv="refresh" content="0;url=` + at + `"><a href="` + at + `">Open the inbox of nod</a>` + "\n"
	if err := os.Remove(page); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replace the page that leads to the inbox: %w", err)
	}
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the page that leads to the inbox: %w", err)
	}
	opener := cmp.Or(os.Getenv("BROWSER"), map[string]string{"darwin": "open"}[runtime.GOOS], "xdg-open")
	if err := exec.CommandContext(e.ctx, opener, page).Run(); err != nil {
		return fmt.Errorf("%s cannot open a browser (%w): nod login prints the link, to open by hand", opener, err)
	}
	fmt.Fprintln(e.stdout, "The browser opens the inbox. The link logs it in once, within 10 minutes.")
	return nil
}
