package payload

import "strings"

// URL returns the style of the host in an address, because the host decides which server the call
// reaches. The host follows the scheme and, if the address contains a login, the login. The host ends
// before the path.
func URL(text string) []Span {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		return nil
	}
	from := len(text) - len(rest)
	to := from + len(rest)
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		to = from + i
	}
	if at := strings.LastIndexByte(text[from:to], '@'); at >= 0 {
		from += at + 1
	}
	if from == to {
		return nil
	}
	return []Span{{from, to, Host}}
}

// JSON returns the styles of a JSON text: names of fields, strings, and punctuation.
func JSON(text string) []Span {
	styles := make([]Style, len(text))
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '}', '[', ']', ',', ':':
			styles[i] = Comment
		case '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			style := Quoted
			if rest := strings.TrimLeft(text[min(end+1, len(text)):], " \t\r\n"); strings.HasPrefix(rest, ":") {
				style = Key
			}
			paint(styles, i, end+1, style)
			i = end
		}
	}
	return spans(styles)
}
