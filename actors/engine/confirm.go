package engine

import (
	"crypto/subtle"
	"os"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// checkConfirmation returns FORBIDDEN if the settings do not accept an allow at this risk from
// the answer's connector, or if the answer lacks the code word that the settings demand.
func (e *connectors) checkConfirmation(risk schemas.Risk, connector string, a *schemas.Answer) error {
	settings := e.settings.now().settings
	for _, c := range settings.Confirms() {
		if c.Wants(risk) && !c.Accepts(connector) {
			return schemas.Errorf(schemas.CodeForbidden, "a request of risk %s is not allowed on %s: it takes %s", risk, connector, c.String())
		}
	}
	c := settings.CodeWordFor(risk)
	if c == nil {
		return nil
	}
	right, err := isCodeWord(c, a.CodeWord)
	if err == nil && !right {
		err = schemas.Errorf(schemas.CodeForbidden, "a request of risk %s needs the code word, and this one is wrong or missing", risk)
	}
	return err
}

// isCodeWord reports whether a person has sent the code word of the settings. The comparison
// takes constant time.
func isCodeWord(c *schemas.Confirm, said string) (bool, error) {
	word, err := codeWord(c)
	return err == nil && subtle.ConstantTimeCompare([]byte(word), []byte(said)) == 1, err
}

// codeWord reads the code word from its file or environment variable. The engine reads it for
// each answer, because the code word may change at any time.
func codeWord(c *schemas.Confirm) (string, error) {
	word, from := os.Getenv(c.CodeWordEnv), c.CodeWordEnv
	if c.CodeWordFile != "" {
		data, err := os.ReadFile(c.CodeWordFile)
		if word, from = string(data), c.CodeWordFile; err != nil {
			return "", schemas.Errorf(schemas.CodeForbidden, "the code word cannot be read on the engine's machine, so nothing of this risk is allowed: %v", err)
		}
	}
	if word = strings.TrimSpace(word); word == "" {
		return "", schemas.Errorf(schemas.CodeForbidden, "there is no code word in %s on the engine's machine, so nothing of this risk is allowed", from)
	}
	return word, nil
}

// confirmationsFor lists the confirmations that an allow at this risk needs beyond an
// approver's answer.
func (e *recordLife) confirmationsFor(risk schemas.Risk) []string {
	var all []string
	for _, c := range e.settings.now().settings.Confirms() {
		if c.Wants(risk) {
			all = append(all, c.String())
		}
	}
	return all
}
