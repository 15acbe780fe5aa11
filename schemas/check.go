package schemas

// The rules of each noun that its JSON Schema does not say.

func (r *Request) check() error {
	if r.Kind == KindToolCall && r.ToolName == "" {
		return invalid("tool_name", "is missing; kind tool_call needs it")
	}
	if r.Kind == KindPermission && len(r.Permissions) == 0 {
		return invalid("permissions", "is empty; kind permission needs at least one tag")
	}
	seen := make(map[string]bool, len(r.Options))
	for _, o := range r.Options {
		if seen[o.OptionID] {
			return invalid("options", "offer %s twice", quote(o.OptionID))
		}
		seen[o.OptionID] = true
	}
	return nil
}

func (a *Answer) check() error {
	if a.OptionID == "" && !a.Cancelled {
		return invalid("option_id", "is missing; an answer names an option or is cancelled")
	}
	if a.OptionID != "" && a.Cancelled {
		return invalid("cancelled", "cannot go with an option_id")
	}
	message, err := Encode(a.Message) // as it will be stored
	if err != nil {
		return invalid("message", "cannot be stored: %v", err)
	}
	if n := len(message) + len(a.UpdatedInput); n > MaxAnswerBytes {
		return invalid("updated_input", "and message are %d bytes together; the most is %d", n, MaxAnswerBytes)
	}
	return nil
}

// An allowed decision that names a rejecting option is nobody's word.
func (d *Decision) check() error {
	if d.Outcome == Allowed && d.OptionKind != "" && !d.OptionKind.Allows() {
		return invalid("option_kind", "%s cannot go with outcome allowed", d.OptionKind)
	}
	return nil
}

func (p *Prompt) check() error {
	if p.SessionID != p.Request.SessionID || p.PendingID != p.Request.PendingID {
		return invalid("request", "is another than the prompt's")
	}
	if err := p.Request.check(); err != nil {
		return err
	}
	return checkOptional(p.Decision)
}

func (p *Page) check() error {
	for i := range p.Prompts {
		if err := p.Prompts[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Record) check() error   { return checkOptional(r.Decision) }
func (e *LogEntry) check() error { return checkOptional(e.Decision) }

func (r *AwaitReply) check() error {
	for _, result := range r.Results {
		if err := checkOptional(result.Decision); err != nil {
			return err
		}
	}
	return nil
}

func checkOptional(d *Decision) error {
	if d == nil {
		return nil
	}
	return d.check()
}

func (s *SettingsState) check() error { return s.Settings.check() }

func (s *Settings) check() error {
	names := make(map[string]bool)
	owners := make(map[Identity]string)
	for _, a := range s.Approvers {
		if names[a.Name] {
			return invalid("approvers", "name %s twice", quote(a.Name))
		}
		names[a.Name] = true
		for _, id := range a.Identities {
			if owner, taken := owners[id]; taken {
				return invalid("approvers", "give %s on %s to %s and to %s; an identity is one person's",
					quote(id.UserID), id.Connector, quote(owner), quote(a.Name))
			}
			owners[id] = a.Name
		}
	}
	return nil
}
