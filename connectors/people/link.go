package people

// LoginLink returns the address that logs a browser in to the web inbox. The login code
// comes after the #: browsers do not send that part, and servers do not log it.
func LoginLink(url, pass string) string { return url + "/#login=" + pass }
