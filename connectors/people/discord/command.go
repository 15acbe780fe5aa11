package discord

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/nodbus/nod/connectors/people"
)

const (
	commandName = "nod"
	commandText = "text" // the name of the command's option that contains the text
)

// command is the slash command of the bot.
type command struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        int             `json:"type"`
	Options     []commandOption `json:"options"`
}

type commandOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

func nodCommand() command {
	return command{
		Name: commandName, Type: 1, Description: "Requests that wait for you, pairing, leave and freeze",
		Options: []commandOption{{Type: 3, Name: commandText, Description: "pending, pair CODE, leave, back, freeze, thaw or web"}},
	}
}

// registerCommand makes the command /nod known to Discord, unless Discord already knows it.
func (c *Carrier) registerCommand(ctx context.Context) error {
	var app struct {
		ID string `json:"id"`
	}
	if err := c.api.call(ctx, "get application", http.MethodGet, "/applications/@me", nil, &app); err != nil {
		return err
	}
	if !isID(app.ID) {
		return fmt.Errorf("discord get application: the reply names no application")
	}
	path := "/applications/" + app.ID + "/commands"
	var known []command
	if err := c.api.call(ctx, "list commands", http.MethodGet, path, nil, &known); err != nil {
		return err
	}
	for _, k := range known {
		if reflect.DeepEqual(k, nodCommand()) {
			return nil
		}
	}
	return c.api.call(ctx, "create command", http.MethodPost, path, nodCommand(), nil)
}

// handleCommand carries out the slash command /nod. Only the person sees the reply.
func (h *handler) handleCommand(ctx context.Context) error {
	commands := people.Commands{Desk: h.desk, Channel: Name, Prefix: "/nod ", Now: h.now}
	words := "/" + strings.TrimLeft(strings.TrimSpace(h.i.written()), "/")
	reply, known, err := commands.Run(ctx, h.from(), words)
	switch name, _ := people.Command(words); {
	case known && err != nil:
		return err
	case known && name == "/web":
		h.reply(ctx, whisper(withLink(reply)))
	case known:
		h.tell(ctx, reply)
	case name == "/pending":
		return h.listPending(ctx)
	default:
		h.tell(ctx, "Nothing changed. Answer with the buttons under a question.\n"+
			"/nod pending lists the requests that wait for you, /nod leave lets a session go on without you until /nod back, /nod freeze denies every request until /nod thaw, /nod web sends a link to the web inbox.\n"+
			"Your Discord user id is "+h.person+". nod recognises approvers by it.")
	}
	return nil
}

// withLink formats a text. If the first line is an address, withLink makes a link without a preview of
// this line. nod makes no other links on Discord.
func withLink(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "http://") && !strings.HasPrefix(first, "https://") || strings.ContainsAny(first, "<> ") {
		return said(text)
	}
	return "<" + first + ">\n" + said(rest)
}

func (h *handler) listPending(ctx context.Context) error {
	list, err := people.ListPending(ctx, h.desk, h.person, h.now)
	if err != nil {
		return h.refuse(ctx, err)
	}
	h.tell(ctx, list)
	return nil
}
