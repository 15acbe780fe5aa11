package discordtest

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	link      = regexp.MustCompile(`^<(https?://[^\s<>]+)>`)
	bareLink  = regexp.MustCompile(`^https?://`)
	emoji     = regexp.MustCompile(`^:[^\s:]+:`)
	lineStart = regexp.MustCompile(`^(?:[-+>#]|\d+\.)`)
)

// render returns a text in Discord's Markdown as a person sees it, and the links in the text. It accepts
// bold text, code, boxes of code, escaped characters and links in angle brackets, and refuses everything
// else that Discord would not show as it is.
func render(source string) (text string, links []string, err error) {
	var out strings.Builder
	bold := false
	for at := 0; at < len(source); {
		rest := source[at:]
		line := strings.TrimLeft(out.String()[strings.LastIndex(out.String(), "\n")+1:], " ") == ""
		switch {
		case strings.HasPrefix(rest, "```"):
			box, n, found := fenced(rest)
			if !found || !line {
				return "", nil, fmt.Errorf("a box of code does not end, or does not begin a line: %.60q", rest)
			}
			out.WriteString(box)
			at += n
		case rest[0] == '`':
			inner, _, found := strings.Cut(rest[1:], "`")
			if !found || inner == "" || strings.ContainsAny(inner, "\n") {
				return "", nil, fmt.Errorf("code does not end: %.60q", rest)
			}
			out.WriteString(inner)
			at += len(inner) + 2
		case strings.HasPrefix(rest, "**"):
			bold = !bold
			at += 2
		case rest[0] == '\\':
			if len(rest) < 2 || strings.ContainsAny(rest[1:2], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n") {
				return "", nil, fmt.Errorf("a backslash escapes nothing: %.60q", rest)
			}
			out.WriteString(rest[1:2])
			at += 2
		case link.MatchString(rest):
			found := link.FindStringSubmatch(rest)
			links = append(links, found[1])
			out.WriteString(found[1])
			at += len(found[0])
		case strings.ContainsAny(rest[:1], "*_~|<[@") || bareLink.MatchString(rest) || emoji.MatchString(rest) || line && lineStart.MatchString(rest):
			return "", nil, fmt.Errorf("the text has markup: %.60q", rest)
		default:
			out.WriteByte(rest[0])
			at++
		}
	}
	if bold {
		return "", nil, fmt.Errorf("bold text does not end: %.60q", source)
	}
	return out.String(), links, nil
}

// fenced reads a box of code at the beginning of a text. Discord reads a word after the fence as a
// language, and cuts empty lines at both ends of the box.
func fenced(text string) (box string, n int, found bool) {
	inner, _, found := strings.Cut(text[3:], "```")
	if !found || !strings.HasPrefix(inner, "\n") {
		return "", 0, false
	}
	return strings.Trim(inner, "\n"), len(inner) + 6, true
}
