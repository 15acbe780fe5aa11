package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

type statusCmd struct {
	Short bool `xor:"form" help:"Print a few characters for a status bar: nothing if no request waits."`
	JSON  bool `name:"json" xor:"form" help:"Print one JSON object."`
}

// status is the state of nod in a few numbers.
type status struct {
	Running bool             `json:"running"`
	Waiting int              `json:"waiting"`
	High    int              `json:"high"` // number of pending requests with a high or an unknown risk
	Oldest  time.Time        `json:"oldest,omitzero"`
	Freezes []schemas.Freeze `json:"freezes"`
}

// Run prints the number of pending requests. It exits with 1 if nod does not run.
func (c *statusCmd) Run(e *env) error {
	s, err := e.status()
	switch {
	case c.JSON:
		if err := e.printJSON(s); err != nil {
			return err
		}
	case c.Short && err != nil:
		fmt.Fprintln(e.stdout, "nod off")
	case c.Short:
		if text := s.short(); text != "" {
			fmt.Fprintln(e.stdout, text)
		}
	case err == nil:
		fmt.Fprintln(e.stdout, s.sentence(time.Now()))
		e.warnFrozen(s.Freezes)
	}
	if err != nil && (c.Short || c.JSON) {
		return exit(exitError)
	}
	return err
}

func (e *env) status() (status, error) {
	s := status{Freezes: []schemas.Freeze{}}
	ctx, d, done, err := e.desk()
	if err != nil {
		return s, err
	}
	defer done()
	counted := map[string]bool{} // keys of the counted requests, because a request that changes during the count may be on two pages
	err = d.EachPending(ctx, schemas.Query{}, func(page []schemas.Prompt) error {
		for i := range page {
			if key := page[i].Key(); !counted[key] {
				counted[key] = true
				s.count(&page[i])
			}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	state, err := d.Settings(ctx)
	if err != nil {
		return s, err
	}
	s.Running, s.Freezes = true, append(s.Freezes, state.Freezes...)
	return s, nil
}

func (s *status) count(p *schemas.Prompt) {
	s.Waiting++
	if r := p.Risk; r != schemas.RiskLow && r != schemas.RiskMedium {
		s.High++
	}
	if at := p.Request.CreatedAt; s.Oldest.IsZero() || at.Before(s.Oldest) {
		s.Oldest = at
	}
}

// short returns the status for a status bar: "nod 3 !1" means three pending requests, one of them with
// a high risk.
func (s status) short() string {
	var all []string
	if len(s.Freezes) > 0 {
		all = append(all, "frozen")
	}
	if s.Waiting > 0 {
		all = append(all, fmt.Sprint(s.Waiting))
	}
	if s.High > 0 {
		all = append(all, fmt.Sprintf("!%d", s.High))
	}
	if len(all) == 0 {
		return ""
	}
	return "nod " + strings.Join(all, " ")
}

func (s status) sentence(now time.Time) string {
	if s.Waiting == 0 {
		return "Nothing waits for an answer."
	}
	text := fmt.Sprintf("%d requests wait for an answer", s.Waiting)
	if s.Waiting == 1 {
		text = "1 request waits for an answer"
	}
	if s.High > 0 {
		text += fmt.Sprintf(", %d with a high risk", s.High)
	}
	return text + "; the oldest has waited for " + schemas.FormatRoughly(now.Sub(s.Oldest)) + ". See nod pending or nod inbox."
}
