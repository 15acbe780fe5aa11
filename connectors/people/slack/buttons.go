package slack

import (
	"fmt"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	maxLabel = 75   // the largest length of a button's label, in UTF-16 units
	maxValue = 2000 // the largest length of a button's value, in bytes
	perBlock = 25   // the largest number of buttons in one block
	// maxButtons is nod's own limit for the buttons of a message or dialog.
	maxButtons = 50
)

// row arranges buttons in blocks. The id of each block begins with the parameter name. Each button gets
// an action_id that is unique in its message or dialog, as Slack demands.
func row(p *schemas.Prompt, name string, all ...people.Button) (blocks []block) {
	for i, c := range all[:min(len(all), maxButtons)] {
		if i%perBlock == 0 {
			blocks = append(blocks, block{Type: "actions", BlockID: fmt.Sprint(name, i/perBlock)})
		}
		b := &blocks[len(blocks)-1]
		b.Elements = append(b.Elements, element{
			Type: "button", Text: plainText(c.Label), ActionID: name + c.Action, Value: people.ButtonFor(p, c.Action).Text(maxValue),
		})
	}
	return blocks
}

func plainText(s string) *text { return &text{Type: "plain_text", Text: s} }

func offer(p *schemas.Prompt) people.Offer {
	return people.Offer{Prompt: p, Whole: fitsWhole(p), MaxLabel: maxLabel, MaxInput: maxWords}
}

func buttons(p *schemas.Prompt) []block { return row(p, "answer", offer(p).Buttons()...) }
