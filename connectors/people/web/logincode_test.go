package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// codes stands in for the store of login codes that another channel has sent.
type codes struct {
	web.LoginCodes
	users map[string]string
}

func (c codes) RedeemLoginCode(_ context.Context, code string) (string, error) {
	user, ok := c.users[code]
	delete(c.users, code)
	if !ok {
		return "", schemas.Errorf(schemas.CodeNotFound, "that link was used")
	}
	return user, nil
}

// A login code from another channel works once. A forged code fails, and so does a valid code of a
// user who is no approver.
func TestALinkFromAPhoneLogsIn(t *testing.T) {
	t.Parallel()
	r := start(t)
	desk := connector.NewDesk(r.connect(roles.ConnectorID(web.Name)), web.Name)
	s, err := web.Open(web.Options{
		DataDir: t.TempDir(), Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Desk: desk, Registry: desk, Records: desk, Log: quiet(),
		LoginCodes: codes{desk, map[string]string{"good": "ann", "eves": "eve"}},
	})
	r.NoError(err)
	t.Cleanup(func() { r.NoError(s.Stop(context.Background())) })
	r.web = &embed.Web{Server: s}
	login := func(token string) answer { return r.does("POST", "/login", `{"token":"`+token+`"}`) }

	r.Equal(http.StatusUnauthorized, login(strings.Repeat("x", 32)).status)
	r.Equal(http.StatusForbidden, login("eves").status)
	in := login("good")
	r.Equal(http.StatusNoContent, in.status, in.body)
	r.JSONEq(`{"user_id":"ann","name":"Ann"}`, r.does("GET", "/whoami", "", with(in.cookies[0])).body)
	r.Equal(http.StatusUnauthorized, login("good").status)
}
