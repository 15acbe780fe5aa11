package people

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// maxRing is the largest width of RingText's result, in columns.
const maxRing = 120

// Bell is the byte that makes a terminal ring, without a notification.
const Bell = "\a"

// Ring returns the bytes that make a terminal ring and show a notification of new requests. The text of
// the notification comes from RingText. The notification has the two forms that terminals know (OSC 9 and
// OSC 777), because a terminal ignores an unknown form.
func Ring(prompts ...schemas.Prompt) string {
	if len(prompts) == 0 {
		return ""
	}
	text := strings.ReplaceAll(RingText(prompts...), ";", ",") // a semicolon would end a field of OSC 777
	return Bell + "\x1b]9;" + text + "\a\x1b]777;notify;nod;" + text + "\a"
}

// RingText returns the text of a notification of new requests. For a single request the text names the
// risk, the agent and the project. For several requests it only contains their number. The text contains
// nothing of the payload, because a notification may also appear on a locked screen.
func RingText(prompts ...schemas.Prompt) string {
	text := fmt.Sprintf("%d requests wait", len(prompts))
	if len(prompts) == 1 {
		p := &prompts[0]
		text = strings.Join(lines(riskWord(p.Risk)+" risk", captionItem(orElse(p.Request.AgentName, p.Agent)), captionItem(place(p.Request.Project, ""))), " · ")
	}
	return cut("nod: "+text, maxRing)
}
