package people

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// maxRing is the largest width of Ring's text in columns.
const maxRing = 120

// Ring returns the bytes by which a terminal calls its user to one new request, or to several: the
// bell, and a notification in the two forms that terminals know (OSC 9 and OSC 777). A terminal
// ignores the forms that it does not know. The text names the risk, the agent and the project. It
// contains nothing of the payload, because a notification can also appear on a locked screen.
func Ring(prompts ...schemas.Prompt) string {
	if len(prompts) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d requests wait", len(prompts))
	if len(prompts) == 1 {
		p := &prompts[0]
		text = strings.Join(lines(riskWord(p.Risk)+" risk", captionItem(orElse(p.Request.AgentName, p.Agent)), captionItem(place(p.Request.Project, ""))), " · ")
	}
	text = strings.ReplaceAll(cut("nod: "+text, maxRing), ";", ",") // a semicolon would end a field of OSC 777
	return "\a\x1b]9;" + text + "\a\x1b]777;notify;nod;" + text + "\a"
}
