package policy

import (
	"net/url"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/schemas"
)

// evaluateOther checks a tool that is neither a shell nor a file tool.
func (ev *evaluation) evaluateOther(in tools.Input) {
	switch {
	case ev.tool.Kind == tools.Web:
		ev.evaluateWeb(in)
	case ev.tool.Kind == tools.Notes && ev.pol.shell.Level >= commands.LevelReaders:
		ev.verdict = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	case ev.tool.Kind == tools.Notes:
		ev.verdict = Verdict{Effect: Ask, Risk: schemas.RiskLow, Reasons: []string{"keeps the agent's own notes"}}
	default:
		ev.evaluateUnknown()
	}
	ev.applyRules(&ruleSubject{url: in.URL()})
	if ev.verdict.Effect == Ask && ev.verdict.Rule == "" && ev.naming == weburl.WholeCall {
		ev.verdict.Rule = secretsRule
	}
}

// evaluateWeb checks a tool that fetches a page or searches the web.
func (ev *evaluation) evaluateWeb(in tools.Input) {
	ev.verdict = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	address := in.URL()
	if to, err := url.Parse(address); err == nil && to.Host != "" {
		ev.verdict.Targets = []schemas.Target{{Does: "uses the network", Name: to.Host}}
	}
	if ev.tool.Name == "WebFetch" && len(in) > 0 {
		ev.addFaults(weburl.OfFetch(address))
	}
	if query, _ := in.Text("query"); ev.tool.Name == "WebSearch" {
		ev.addFaults(weburl.OfSearch(query))
	}
	ev.addReason("uses the network")
	ev.unknownField(in)
}

// addFaults adds the faults of the call's URL to the verdict. If there is a fault, the verdict becomes Ask.
func (ev *evaluation) addFaults(faults []weburl.Fault) {
	for _, f := range faults {
		ev.raise(f.Risk, f.Why)
		if ev.verdict.Effect, ev.naming = Ask, max(ev.naming, f.Needs); ev.verdict.Why == "" {
			ev.verdict.Why = f.Why
		}
	}
}

// raise adds a reason to the verdict. If the verdict's risk is lower than the given risk, raise replaces it.
func (ev *evaluation) raise(risk schemas.Risk, why string) {
	ev.addReason(why)
	ev.verdict.Risk = schemas.HigherRisk(ev.verdict.Risk, risk)
}

// evaluateUnknown checks a tool that nod does not know, such as that of an MCP server.
func (ev *evaluation) evaluateUnknown() {
	if ev.location.Looked != nil {
		ev.namesOnlyProject() // notes for Looks the names in the input that may be links; answers that this policy does not have may depend on them
	}
	ev.verdict = Verdict{Effect: Ask, Risk: schemas.RiskMedium}
	ev.judgeInput()
	if verb := tools.GraveVerb(ev.call.ToolName); verb != "" {
		ev.raise(schemas.RiskHigh, "has effects that nod does not know, and a name that says "+verb)
		return
	}
	ev.addReason("has effects that nod does not know")
}
