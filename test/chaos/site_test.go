package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/internal/testports"
)

const botToken = "777:AAchaoschaoschaoschaoschaoschaoscha"

// The approvers are Ann at the terminal, Bob on the web, and Carl on Telegram.
const (
	ann    = "ann"
	bob    = "bob"
	carl   = "4711"
	carlID = 4711
)

// place is the nod under test, which is a cluster or one embedded nod.
type place interface {
	// urls returns the servers' addresses for one kind of client, such as "agents" or "people".
	urls(client string) string
	keys() *roles.Keys
	telegram() *telegramtest.Server
	// command returns a nod command that connects as the given kind of client, with the given key.
	command(client, key string, args ...string) *exec.Cmd
	processes() []*process
	close() error
}

// site is the part that all places share: the programs, a directory, keys, and a Telegram server.
type site struct {
	programs
	dir      string
	holds    *roles.Keys
	phone    *telegramtest.Server
	running  []*process // all processes that the test has started, the newest last
	reserved []*testports.Reservation
}

func newSite(dir string, p programs) (*site, error) {
	s := &site{programs: p, dir: dir, phone: telegramtest.New(botToken)}
	s.phone.Unlimited()
	s.phone.Start(carlID)
	var err error
	if s.holds, err = roles.OpenKeys(dir); err != nil {
		return nil, err
	}
	others := []roles.ID{roles.AgentID("ada"), roles.ConnectorID("web"), roles.ConnectorID("telegram")}
	if err := s.holds.Ensure(append(roles.First(), others...)...); err != nil {
		return nil, err
	}
	return s, errors.Join(s.write("token", botToken), s.write("settings.json", s.settings()))
}

func (s *site) keys() *roles.Keys              { return s.holds }
func (s *site) telegram() *telegramtest.Server { return s.phone }

func (s *site) processes() []*process { return s.running }

func (s *site) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600)
}

func (s *site) key(name string) string { return filepath.Join(s.dir, "keys", name+".nk") }

// settings returns the settings of every scenario. They set no limit on the number of open prompts, and have
// rules for two tools.
func (s *site) settings() string {
	return fmt.Sprintf(`{
		"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"], "open_prompts": 0, "notify_after_seconds": 1},
		"approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": %q}]},
			{"name": "Bob", "identities": [{"connector": "web", "user_id": %q}]},
			{"name": "Carl", "identities": [{"connector": "telegram", "user_id": %q}]}
		]},
		"connectors": {"telegram": {"base_url": %q, "token_file": %q}}
	}`, ann, bob, carl, s.phone.URL(), filepath.Join(s.dir, "token"))
}

// The method begin starts a process, and adds it to the field running.
func (s *site) begin(ctx context.Context, p *process) error {
	s.running = append(s.running, p)
	return p.start(ctx)
}

// reserve returns n free ports. No other test gets these ports before the returned function is called.
func (s *site) reserve(n int) ([]int, error) {
	r, err := testports.Reserve(n)
	if err != nil {
		return nil, err
	}
	s.reserved = append(s.reserved, r)
	return r.Ports, nil
}

func (s *site) close() error {
	var errs []error
	for _, p := range slices.Backward(s.running) {
		errs = append(errs, p.kill())
	}
	for _, r := range s.reserved {
		errs = append(errs, r.Release())
	}
	s.phone.Close()
	return errors.Join(errs...)
}
