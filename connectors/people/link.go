package people

import (
	"net/url"
	"strings"
)

// LoginLink returns an address that logs a browser in to the web inbox. The login code is behind the
// #, because browsers do not send that part to servers, so no server logs it.
func LoginLink(url, pass string) string { return url + "/#login=" + pass }

// SessionLink returns the address of a session's page in the web inbox. The parameter web is the address
// of the inbox. The page shows the session's requests to a person who has logged in. A GET of the address
// decides nothing.
func SessionLink(web, session string) string {
	return strings.TrimRight(web, "/") + "/#/session/" + url.PathEscape(session)
}
