package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// logins checks the issuer at which people log in to the web inbox, as far as that can be done without a
// login.
func logins(ctx context.Context, o Options, s *schemas.Settings) (found []Finding) {
	const check = "logins"
	if s.OIDC() == nil {
		return nil
	}
	client, err := web.Issuer(s)
	if err != nil && o.Place.URL != "" { // the web inbox may run on another machine, which has the secret of the login
		return []Finding{note(check, oneLine(err), "run nod doctor on the machine of the web inbox")}
	}
	if err != nil {
		return []Finding{wrong(check, oneLine(err), "a service sees no variables of your shell: name secrets in files")}
	}
	for _, r := range client.Examine(ctx) {
		switch {
		case r.Err != nil:
			found = append(found, wrong(check, oneLine(r.Err), ""))
		case r.Unsure:
			found = append(found, note(check, r.What, "log in once"))
		default:
			found = append(found, ok(check, r.What))
		}
	}
	return found
}

// tokenService checks the issuers of the jobs' tokens, and whether a token service answers the server. If the
// data directory has neither the settings nor the key of a token service, it returns nothing.
func tokenService(ctx context.Context, o Options) (found []Finding) {
	const check = "token service"
	file := filepath.Join(o.DataDir, "tokens.json")
	_, err := os.Stat(file)
	hasSettings := err == nil
	switch {
	case hasSettings:
		found = append(found, tokenIssuers(ctx, o, check, file)...)
	case !errors.Is(err, fs.ErrNotExist):
		found = append(found, failed(check, err))
	}
	id := roles.ID{Role: roles.TokenService}
	if o.Place.URL == "" {
		keys, err := roles.OpenKeys(o.DataDir)
		if err != nil {
			return append(found, failed(check, err))
		}
		if _, err := keys.User(id); errors.Is(err, fs.ErrNotExist) {
			if hasSettings {
				found = append(found, note(check, "tokens.json names jobs, and no token service has a key", "nod keys add token-service, then start nod up again and run nod token-service"))
			}
			return found
		}
	} else if o.roles()[0] != id {
		return found
	}
	return append(found, answering(ctx, o, check))
}

func tokenIssuers(ctx context.Context, o Options, check, file string) (found []Finding) {
	settings, err := tokens.Read(file)
	if err != nil {
		return []Finding{failed(check, err)}
	}
	service, err := tokens.New(settings, o.Log)
	if err != nil {
		return []Finding{failed(check, err)}
	}
	all := service.Examine(ctx)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := all[name]; err != nil {
			found = append(found, wrong(check, oneLine(err), ""))
			continue
		}
		found = append(found, ok(check, "the keys of "+name+" can be read"))
	}
	return found
}

// answering tries to connect with a token that no service admits. The server must ask a token service
// about the token, and get an answer within roles.AdmitWithin.
func answering(ctx context.Context, o Options, check string) Finding {
	place := o.Place
	place.TokenFile = "" // the token service connects by its key, not by a token
	conn, err := bus.Join(ctx, place, roles.ID{Role: roles.TokenService}, o.Log)
	const restart = "give the servers the new text of nod keys config, and start them again (with nod up: start it again)"
	if errors.Is(err, bus.ErrRefused) {
		return wrong(check, "the server does not know the key of the token service", restart)
	}
	if err != nil {
		return failed(check, fmt.Errorf("connect as the token service: %w", err))
	}
	defer conn.Close()
	asked, stop, err := conn.HearQuestions()
	if err != nil {
		return failed(check, err)
	}
	defer stop()
	if err := conn.Flush(ctx); err != nil {
		return failed(check, err)
	}
	took, err := refusal(ctx, o)
	switch {
	case err == nil:
		return wrong(check, "the server admits a client without a valid token", restart)
	case !errors.Is(err, bus.ErrRefused):
		return failed(check, err)
	case !asked(ctx):
		return wrong(check, "the server does not ask the token service about clients without a key", restart)
	case took >= roles.AdmitWithin:
		return wrong(check, fmt.Sprintf("no token service answers the server within %s, so jobs are refused", roles.AdmitWithin), "start one: nod token-service; its log has what it lacks")
	}
	return ok(check, "a token service answers the server")
}

// refusal connects with a text that is no token, and returns how long the refusal took.
func refusal(ctx context.Context, o Options) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", "nod-doctor-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	place := o.Place
	place.Creds, place.TokenFile = "", filepath.Join(dir, "token")
	if err := os.WriteFile(place.TokenFile, []byte("no-token"), 0o600); err != nil {
		return 0, err
	}
	began := time.Now()
	conn, err := bus.Join(ctx, place, roles.AgentID("nod-doctor"), o.Log)
	if err == nil {
		conn.Close()
	}
	return time.Since(began), err
}
