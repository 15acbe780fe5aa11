package contained

import "strings"

// Words returns the words of the command that runs a line contained.
func Words(line string) []string { return []string{"bash", "-c", line} }

// Program is the nod program that starts a contained command. Its paths are absolute. Only Path is
// required; any other empty field means the default.
type Program struct {
	Path  string
	Data  string // the data directory
	URL   string // the NATS servers, without passwords
	Creds string // the key file
}

// RunLine returns the command line with which the program p runs a line that nod has allowed. The
// key names the decision's record. Bash, Zsh, dash and fish read the result as one command, nod
// exec, whose last word is that line.
func RunLine(p Program, key, line string) string {
	words := []string{Quote(p.Path)}
	for _, option := range [][2]string{{"--data", p.Data}, {"--nats-url", p.URL}, {"--creds", p.Creds}} {
		if option[1] != "" {
			words = append(words, option[0], Quote(option[1]))
		}
	}
	words = append(words, "exec", "--run", key, "--")
	w := Words(line)
	return strings.Join(append(words, w[0], w[1], Quote(w[2])), " ")
}

// Quote returns text as one word that Bash, Zsh, dash and fish read in the same way. It writes
// backslashes and single quotes between double quotes, because fish gives a meaning to backslashes
// between single quotes.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range []byte(text) {
		switch r {
		case '\'':
			b.WriteString(`'"'"'`)
		case '\\':
			b.WriteString(`'"\\"'`)
		default:
			b.WriteByte(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
