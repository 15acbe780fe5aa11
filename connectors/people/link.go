package people

// LoginLink logs a browser in to the web inbox. What lets it in stands behind the
// #, which no browser sends and no server logs.
func LoginLink(url, pass string) string { return url + "/#login=" + pass }
