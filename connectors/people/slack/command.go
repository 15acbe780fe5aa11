package slack

import (
	"context"
	"strings"

	"github.com/nodbus/nod/connectors/people"
)

// handleCommand carries out the slash command /nod with this text. Only the person sees the
// reply.
func (h *handler) handleCommand(ctx context.Context, text string) error {
	commands := people.Commands{Desk: h.desk, Channel: Name, Prefix: "/nod ", Now: h.now}
	words := "/" + strings.TrimLeft(strings.TrimSpace(text), "/")
	reply, known, err := commands.Run(ctx, h.from(), words)
	switch command, _ := people.Command(words); {
	case known && err != nil:
		return err
	case known && command == "/web":
		h.tellBlocks(ctx, "nod", withLink(reply))
	case known:
		h.tell(ctx, reply)
	case command == "/pending":
		return h.listPending(ctx)
	default:
		h.tell(ctx, "Nothing changed. Answer with the buttons under a question.\n"+
			"/nod pending lists the requests that wait for you, /nod leave lets a session go on without you until /nod back, /nod freeze denies every request until /nod thaw, /nod web sends a link to the web inbox.\n"+
			"Your Slack user id is "+h.person+". nod recognises approvers by it.")
	}
	return nil
}

// withLink converts a text to blocks. If the first line is an address, withLink makes a link of this
// line. nod makes no other links on Slack.
func withLink(text string) []block {
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "http://") && !strings.HasPrefix(first, "https://") {
		return said(text)
	}
	link := block{Type: "rich_text", Elements: []element{{Type: "rich_text_section", Elements: []element{{Type: "link", URL: first, Text: "Open the web inbox"}}}}}
	return append([]block{link}, said(rest)...)
}

func (h *handler) listPending(ctx context.Context) error {
	list, err := people.ListPending(ctx, h.desk, h.person, h.now)
	if err != nil {
		return h.refuse(ctx, err)
	}
	h.tell(ctx, list)
	return nil
}
