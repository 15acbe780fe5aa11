package people

// LoginLink returns an address that logs a browser in to the web inbox. The login code is behind the
// #, because browsers do not send that part to servers, so no server logs it.
func LoginLink(url, pass string) string { return url + "/#login=" + pass }
