package schemas

import (
	"encoding/json"
	"strconv"
	"strings"
)

// number reads a number. It refuses integers beyond ±2^53, and numbers that a double cannot hold
// exactly, because RFC 8785 would change them.
func (r *reader) number() (json.Number, *fault) {
	start := r.at
	for r.at < len(r.data) && strings.IndexByte("+-.0123456789eE", r.data[r.at]) >= 0 {
		r.at++
	}
	literal := r.data[start:r.at]
	if !strings.ContainsAny(literal, ".eE") {
		if n, err := strconv.ParseInt(literal, 10, 64); err != nil || n > 1<<53 || n < -1<<53 {
			return "", &fault{text: "is an integer beyond 2^53, which not every reader keeps exactly; send it as a string"}
		}
		return json.Number(literal), nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || decimalOf(literal) != decimalOf(strconv.FormatFloat(f, 'e', -1, 64)) {
		return "", &fault{text: "is a number that a double cannot keep exactly; send it as a string"}
	}
	return json.Number(literal), nil
}

// decimal is the exact value of a number, in the form ±0.digits × 10^exponent. Equal numbers have
// equal decimals.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// decimalOf returns the value of a JSON number. If the exponent overflows an int, no double can hold
// the number, unless the number is zero.
func decimalOf(literal string) decimal {
	var d decimal
	literal, d.negative = strings.CutPrefix(literal, "-")
	mantissa, exponent := literal, ""
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], literal[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{} // minus zero equals zero
	}
	d.exponent, _ = strconv.Atoi(exponent)
	d.exponent += len(whole) - (len(whole) + len(fraction) - len(digits))
	d.digits = strings.TrimRight(digits, "0")
	return d
}
