package schemas

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the time zones are compiled in, because the settings may name a zone that the machine does not have
)

// Escalation says, step by step, which people are asked about a request of the risk Risk or a higher
// one. It does not change who may answer or how long the request waits.
type Escalation struct {
	Risk Risk `json:"risk"`
	// Rules limits the escalation to tool calls that one of these rules covers. An empty list sets no
	// limit.
	Rules []string `json:"rules,omitempty"`
	Steps []Step   `json:"steps"`
}

// Step names people and groups. They are asked if the request still waits when the time of the step
// has passed.
type Step struct {
	To           []string `json:"to"`
	AfterSeconds int      `json:"after_seconds,omitempty"` // the time in seconds since the request; 0 in the first step
}

// Wants reports whether the escalation is for a request of this risk. It does not look at the field
// Rules, which may still exclude the request. An unknown risk counts as the highest.
func (e *Escalation) Wants(risk Risk) bool { return (&Confirm{Risk: e.Risk}).Wants(risk) }

// QuietHours are hours of a day in which no phone or chat of a person gets a prompt.
type QuietHours struct {
	// Days are the days of the week on which the quiet hours begin, such as "sat". An empty list means
	// every day.
	Days []string `json:"days,omitempty"`
	From string   `json:"from"` // the time of day, such as "22:00"
	To   string   `json:"to"`   // the end, at the next such time of day after From; if To equals From, the quiet hours last a day
}

// weekdays are the names of the days, in the order of time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// maxQuiet is the greatest number of periods of quiet hours that QuietUntil joins. Ten of them cover more
// than a week.
const maxQuiet = 10

// QuietUntil returns the end of the person's quiet hours at the given time. If further quiet hours
// follow directly, it returns the end of these. Outside quiet hours it returns the given time. If
// quiet hours follow each other for many days, it returns the end of a period after maxQuiet periods.
func (a *Approver) QuietUntil(at time.Time) time.Time {
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil { // this cannot happen, because DecodeSettings refuses unknown zones
		return at
	}
	for range maxQuiet {
		end := at
		for i := range a.Quiet {
			if until := a.Quiet[i].until(at.In(zone)); until.After(end) {
				end = until
			}
		}
		if !end.After(at) {
			break
		}
		at = end
	}
	return at.UTC()
}

// until returns the end of the quiet hours if they include the given time, and else the zero time. It
// uses the time zone of the given time. If the clocks change during the quiet hours, the quiet hours
// are longer or shorter.
func (q *QuietHours) until(at time.Time) time.Time {
	from, _ := time.Parse("15:04", q.From) // the JSON Schema has checked the format of both times
	to, _ := time.Parse("15:04", q.To)
	for back := range 2 { // the quiet hours may have begun on this day or on the day before
		day := at.AddDate(0, 0, -back)
		if len(q.Days) > 0 && !slices.Contains(q.Days, weekdays[day.Weekday()]) {
			continue
		}
		on := func(add int, clock time.Time) time.Time {
			return time.Date(day.Year(), day.Month(), day.Day()+add, clock.Hour(), clock.Minute(), 0, 0, at.Location())
		}
		end := on(0, to)
		if !to.After(from) {
			end = on(1, to)
		}
		if !at.Before(on(0, from)) && at.Before(end) {
			return end
		}
	}
	return time.Time{}
}

// Escalations returns the configured escalations.
func (s *Settings) Escalations() []Escalation {
	if s.Approvers == nil {
		return nil
	}
	return s.Approvers.Escalation
}

// checkEscalations returns an error for an escalation that names unknown people, or whose steps are
// not in the order of their times.
func (s *Settings) checkEscalations() error {
	for i, e := range s.Escalations() {
		for j, step := range e.Steps {
			at := fmt.Sprintf("approvers.escalation[%d].steps[%d]", i, j)
			if err := s.checkNames(at+".to", step.To); err != nil {
				return err
			}
			switch {
			case j == 0 && step.AfterSeconds != 0:
				return invalid(at+".after_seconds", "the first step comes at once: leave it out")
			case j > 0 && step.AfterSeconds <= e.Steps[j-1].AfterSeconds:
				return invalid(at+".after_seconds", "must be more than that of the step before, %d", e.Steps[j-1].AfterSeconds)
			}
		}
	}
	return nil
}

// checkQuiet returns an error for quiet hours without a known time zone. It also returns an error for a
// stand-in who is unknown or who has no effect.
func (s *Settings) checkQuiet() error {
	for i, a := range s.People() {
		at := fmt.Sprintf("approvers.people[%d]", i)
		if _, err := time.LoadLocation(a.TimeZone); err != nil || a.TimeZone == "Local" {
			return invalid(at+".time_zone", "%s is no known time zone: name one such as Europe/Berlin", quote(a.TimeZone))
		}
		switch {
		case len(a.Quiet) > 0 && a.TimeZone == "":
			return invalid(at+".time_zone", "is missing; quiet hours are in the person's time zone, such as Europe/Berlin")
		case a.StandIn == "":
			continue
		case len(a.Quiet) == 0:
			return invalid(at+".stand_in", "is for quiet hours, and %s has none", quote(a.Name))
		}
		in := s.Named([]string{a.StandIn})
		if len(in) == 0 {
			return invalid(at+".stand_in", "%s is neither a person nor a group: see approvers.people and approvers.groups", quote(a.StandIn))
		}
		if !slices.ContainsFunc(in, func(in Approver) bool { return in.Name != a.Name }) {
			return invalid(at+".stand_in", "is %s: name another person or a group", quote(a.StandIn))
		}
	}
	return nil
}
