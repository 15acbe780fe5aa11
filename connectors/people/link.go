package people

// LoginLink is the address that logs a browser in to the web inbox. The code stands
// behind the #, which no browser sends and no server logs.
func LoginLink(url, pass string) string { return url + "/#login=" + pass }
