package people

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// maxRing is the largest width of RingText's result, in columns.
const maxRing = 120

// Bell is the byte by which a terminal calls its user without a notification.
const Bell = "\a"

// Ring returns the bytes by which a terminal calls its user to one new request, or to several: the
// bell, and a notification with RingText in the two forms that terminals know (OSC 9 and OSC 777). A
// terminal ignores the forms that it does not know.
func Ring(prompts ...schemas.Prompt) string {
	if len(prompts) == 0 {
		return ""
	}
	text := strings.ReplaceAll(RingText(prompts...), ";", ",") // a semicolon would end a field of OSC 777
	return Bell + "\x1b]9;" + text + "\a\x1b]777;notify;nod;" + text + "\a"
}

// RingText returns the text of a notification of one or several new requests. It names the risk, the agent
// and the project of one request. It contains nothing of the payload, because a notification can also appear
// on a locked screen.
func RingText(prompts ...schemas.Prompt) string {
	text := fmt.Sprintf("%d requests wait", len(prompts))
	if len(prompts) == 1 {
		p := &prompts[0]
		text = strings.Join(lines(riskWord(p.Risk)+" risk", captionItem(orElse(p.Request.AgentName, p.Agent)), captionItem(place(p.Request.Project, ""))), " · ")
	}
	return cut("nod: "+text, maxRing)
}
