package voice

import (
	"slices"
	"strings"
)

// The bounds of a text that can be spoken. A person cannot keep a longer text in mind, and cannot tell
// the characters of a longer word apart.
const (
	maxSpoken = 240 // the longest text, in characters with the signs spelled out
	maxWords  = 45
	maxWord   = 20 // the longest written word, in characters
)

// signs are the spoken names of all printable ASCII characters that are no letter and no digit. Speech
// programs leave out or guess most of them, and "rm -rf / tmp" must not sound like "rm -rf /tmp".
var signs = map[byte]string{
	' ': "space", '!': "exclamation mark", '"': "double quote", '#': "hash", '$': "dollar", '%': "percent", '&': "ampersand",
	'\'': "single quote", '(': "open bracket", ')': "close bracket", '*': "star", '+': "plus", ',': "comma", '-': "dash", '.': "dot",
	'/': "slash", ':': "colon", ';': "semicolon", '<': "less than", '=': "equals", '>': "greater than", '?': "question mark",
	'@': "at sign", '[': "open square bracket", '\\': "backslash", ']': "close square bracket", '^': "caret", '_': "underscore",
	'`': "backtick", '{': "open brace", '|': "pipe", '}': "close brace", '~': "tilde",
}

// Words that announce capital letters.
const (
	oneCapital  = "capital"  // announces that the next word begins with a capital
	allCapitals = "capitals" // announces that the next word has only capitals
)

// spell returns words that convey every character of text. ok is false if the text is too long, or
// contains characters outside printable ASCII, such as a letter of another script that looks like a Latin
// one. ok is also false if the text contains a word such as "dash", which sounds like the sign "-".
func spell(text string) (spoken string, ok bool) {
	var words []string
	for i := 0; i < len(text); {
		c := text[i]
		if name, isSign := signs[c]; isSign {
			if c != ' ' || !between(text, i) {
				words = append(words, name)
			}
			i++
			continue
		}
		n := wordLength(text[i:])
		if n == 0 || n > maxWord {
			return "", false
		}
		words = append(words, pronounce(text[i:i+n])...)
		i += n
	}
	spoken = strings.Join(words, " ")
	if text == "" || len(spoken) > maxSpoken || len(words) > maxWords || namesSign(plainWords(text)) {
		return "", false
	}
	return spoken, true
}

// between reports whether the blank at i stands between two words in lower case. A pause between the two
// words conveys such a blank. Next to a capital letter the blank must be spoken, because the word
// "capital" also makes a pause.
func between(text string, i int) bool {
	return i > 0 && i+1 < len(text) && plain(text[i-1]) && plain(text[i+1])
}

func plain(c byte) bool { return alphanumeric(c) && !isUpper(c) }

func alphanumeric(c byte) bool { return isUpper(c) || isLower(c) || '0' <= c && c <= '9' }
func isUpper(c byte) bool      { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool      { return 'a' <= c && c <= 'z' }

// wordLength returns the number of letters and digits at the start of text.
func wordLength(text string) (n int) {
	for n < len(text) && alphanumeric(text[n]) {
		n++
	}
	return n
}

// pronounce returns the words to speak for letters and digits. The words also convey which
// letters are capitals.
func pronounce(word string) (words []string) {
	for i := 0; i < len(word); {
		n := 1
		switch {
		case isUpper(word[i]) && i+1 < len(word) && isUpper(word[i+1]):
			for i+n < len(word) && isUpper(word[i+n]) {
				n++
			}
			words = append(words, allCapitals)
		case isUpper(word[i]):
			for i+n < len(word) && !isUpper(word[i+n]) {
				n++
			}
			words = append(words, oneCapital)
		default:
			for i+n < len(word) && !isUpper(word[i+n]) {
				n++
			}
		}
		words = append(words, strings.ToLower(word[i:i+n]))
		i += n
	}
	return words
}

// plainWords returns the words of a text in lower case, and an empty word for each sign between
// them.
func plainWords(text string) (words []string) {
	for i := 0; i < len(text); {
		n := wordLength(text[i:])
		switch {
		case n > 0:
			words = append(words, strings.ToLower(text[i:i+n]))
		case text[i] != ' ':
			words = append(words, "")
		}
		i += max(n, 1)
	}
	return words
}

// namesSign reports whether these words contain the name of a sign, or a word that announces capital
// letters.
func namesSign(words []string) bool {
	if slices.Contains(words, oneCapital) || slices.Contains(words, allCapitals) {
		return true
	}
	for _, name := range signs {
		if containsWords(words, strings.Fields(name)) {
			return true
		}
	}
	return false
}

// containsWords reports whether the words in part follow one another in words, without a gap.
func containsWords(words, part []string) bool {
	for i := 0; i+len(part) <= len(words); i++ {
		if slices.Equal(words[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
