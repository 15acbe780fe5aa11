package people

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

func expiry(p *schemas.Prompt, now time.Time) []string {
	then := "unanswered, it is denied automatically"
	switch p.Request.Kind {
	case schemas.KindPermission:
		then = "unanswered, nothing is granted"
	case schemas.KindQuestion:
		then = "unanswered, the agent gets no answer"
	}
	if p.Deadline.IsZero() {
		return []string{"(not said); " + then}
	}
	at := DeadlineText(p, now)
	now = recipientTime(p, now)
	if left := p.Deadline.Sub(now); left > 0 {
		return append([]string{"in " + schemas.FormatRoughly(left) + ", " + at + "; " + then}, lines(NextText(p, now))...)
	}
	return []string{at + ", which has passed; " + then}
}

// DeadlineText returns a pending request's deadline, such as "14:05 CET", in the zone of its recipient or
// else in the time zone of now.
func DeadlineText(p *schemas.Prompt, now time.Time) string {
	now = recipientTime(p, now)
	return clock(p.Deadline.In(now.Location()), now)
}

// recipientTime returns now in the time zone of the prompt's recipient, if the settings name that zone.
func recipientTime(p *schemas.Prompt, now time.Time) time.Time {
	if p.Zone == "" {
		return now
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return now
	}
	return now.In(zone)
}

// NextText returns the next step of a pending request's escalation, such as "goes to Bob at 14:05 CET",
// with the time in the time zone of now. Without a further step it returns "".
func NextText(p *schemas.Prompt, now time.Time) string {
	if p.Next == nil || p.Decision != nil {
		return ""
	}
	return cut("goes to "+Line(listNames(p.Next.To)), maxVotesText) + " at " + clock(p.Next.At.In(now.Location()), now)
}

// waiterNote returns a warning if perhaps no call waits for the answer any more.
func waiterNote(p *schemas.Prompt) []string {
	switch {
	case p.Detached:
		return []string{"the agent has stopped waiting; an answer counts if it asks again"}
	case p.Request.HostAsks:
		return []string{"can also be answered in the agent's own terminal"}
	}
	return nil
}

// callsPart returns a part with the number of identical calls that wait for the answer to p. It
// returns no part if p is decided or only one call waits.
func callsPart(p *schemas.Prompt) []Part {
	n := p.Waiting
	if n < 2 || p.Decision != nil {
		return nil
	}
	text := fmt.Sprintf("%s · %d identical calls wait: allow once lets these %d run", Times(p), n, n)
	if p.Request.Kind != schemas.KindToolCall {
		text = fmt.Sprintf("%s · %d identical requests wait: one answer is for these %d", Times(p), n, n)
	}
	return []Part{{Label: "Calls", Lines: []string{text}}}
}

// votesPart returns a part with the votes so far, if p is pending and several people must allow it.
func votesPart(p *schemas.Prompt) []Part {
	if p.VotesNeeded < 2 || p.Decision != nil {
		return nil
	}
	return []Part{{Label: "Votes", Lines: []string{VotesText(p)}}}
}

// VotesText returns the votes so far of a request that several people must allow, such as "1 of 2: Ann;
// one denial ends it". If the votes are for different options, it lists them by option. For a request
// that one person decides, it returns "".
func VotesText(p *schemas.Prompt) string {
	if p.VotesNeeded < 2 {
		return ""
	}
	byOption := map[string][]schemas.Vote{}
	for _, v := range p.Votes {
		byOption[v.OptionID] = append(byOption[v.OptionID], v)
	}
	var all []string
	for _, o := range p.Request.Offered() {
		votes := byOption[o.OptionID]
		if len(votes) == 0 {
			continue
		}
		text := Line(schemas.DescribeVotes(votes, p.VotesNeeded))
		if len(byOption) > 1 {
			text += " for " + Line(o.Name)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		all = []string{schemas.DescribeVotes(nil, p.VotesNeeded)}
	}
	return cut(strings.Join(all, "; "), maxVotesText) + "; one denial ends it"
}

// maxVotesText is the largest width of the votes in a prompt, in columns.
const maxVotesText = 160

// AsShown returns p with another number of identical calls: waiters, the number that its message showed.
// An answer made from the result covers only these calls, not calls that joined later.
func AsShown(p schemas.Prompt, waiters int) schemas.Prompt {
	p.Waiters = max(1, waiters)
	if p.Decision == nil {
		p.Waiting = min(p.Waiting, p.Waiters)
	}
	return p
}

// Times returns "×3" if three identical calls wait for the answer. For one call it returns "".
func Times(p *schemas.Prompt) string {
	if p.Waiting < 2 {
		return ""
	}
	return fmt.Sprintf("×%d", p.Waiting)
}
