package voice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// bench is a dialogue whose clock the test moves.
type bench struct {
	*require.Assertions
	dialogue
	now time.Time
}

func newBench(t testing.TB) *bench {
	b := &bench{Assertions: require.New(t), now: time.Now()}
	b.dialogue = dialogue{
		from: schemas.From{UserID: "v-ann"}, wrong: map[string]int{},
		mouth: &mouth{margin: DefaultMargin, rate: DefaultRate, more: make(chan struct{})},
	}
	return b
}

// command returns a prompt to run a command in /src/app.
func command(t testing.TB, text string, risk schemas.Risk) schemas.Prompt {
	details, err := schemas.Encode(map[string]string{"command": text, "cwd": "/src/app"})
	require.NoError(t, err)
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "s-1", PendingID: "p-1", Kind: schemas.KindToolCall, Title: "Run", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: details, Project: "/src/app", Options: schemas.DefaultOptions(),
	}
	return schemas.Prompt{Type: schemas.TypePrompt, SessionID: "s-1", PendingID: "p-1", Request: r, Digest: "d", Risk: risk, Waiters: 1, Waiting: 1, Revision: 1}
}

// asks makes the dialogue ask about p, and moves the clock until the client has spoken and no
// echo can arrive any more.
func (b *bench) asks(p schemas.Prompt) string {
	b.ask(p)
	return b.speaks()
}

// speaks simulates that the client speaks all its lines. It returns the last line.
func (b *bench) speaks() (last string) {
	b.mouth.mu.Lock()
	b.fetched(b.lines, b.now)
	if n := len(b.lines); n > 0 {
		last = b.lines[n-1].Text
	}
	b.lines = nil
	b.now = b.playTo.Add(b.margin)
	b.mouth.mu.Unlock()
	return last
}

func (b *bench) hears(text string) *schemas.Answer {
	return b.hear(Utterance{Text: text, Final: true, Ended: b.now}, b.now)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		risk    schemas.Risk
		takes   string // a condition for an allow, such as the code word
		said    []string
		allowed bool
		answers bool
		code    string
	}{
		{"low risk", schemas.RiskLow, "", []string{"yes"}, false, false, ""},
		{"okay", schemas.RiskLow, "", []string{"okay", "confirm"}, true, true, ""},
		{"approve", schemas.RiskLow, "", []string{"Approve."}, false, false, ""},
		{"approve, confirmed", schemas.RiskLow, "", []string{"Approve.", "confirm"}, true, true, ""},
		{"continue, confirmed", schemas.RiskMedium, "", []string{"continue", "confirm"}, true, true, ""},
		{"reject", schemas.RiskLow, "", []string{"reject"}, false, true, ""},
		{"read back", schemas.RiskMedium, "", []string{"yes"}, false, false, ""},
		{"confirmed", schemas.RiskMedium, "", []string{"yes", "Confirm."}, true, true, ""},
		{"an unknown risk is not low", "new", "", []string{"yes"}, false, false, ""},
		{"confirm alone", schemas.RiskHigh, "", []string{"confirm"}, false, false, ""},
		{"yes twice", schemas.RiskHigh, "", []string{"yes", "yes"}, false, false, ""},
		{"a yes that was taken back", schemas.RiskHigh, "", []string{"yes", "wait a minute", "confirm"}, false, false, ""},
		{"yes then no", schemas.RiskHigh, "", []string{"yes", "no"}, false, true, ""},
		{"repeated", schemas.RiskHigh, "", []string{"repeat", "yes", "repeat", "confirm"}, true, true, ""},
		{"the code word", schemas.RiskHigh, schemas.ConditionCodeWord, []string{"yes", "Tango whisky."}, true, true, "tango whisky"},
		{"a code word at low risk", schemas.RiskLow, schemas.ConditionCodeWord, []string{"yes"}, false, false, ""},
		{"confirm where the code word is needed", schemas.RiskHigh, schemas.ConditionCodeWord, []string{"yes", "confirm", "yes"}, false, false, ""},
		{"the code word alone", schemas.RiskHigh, schemas.ConditionCodeWord, []string{"tango whisky"}, false, false, ""},
		{"no instead of the code word", schemas.RiskHigh, schemas.ConditionCodeWord, []string{"yes", "stop"}, false, true, ""},
		{"a screen is needed", schemas.RiskLow, "at least a screen", []string{"yes", "confirm"}, false, false, ""},
		{"a second device is needed", schemas.RiskLow, schemas.ConditionSecondDevice, []string{"yes", "confirm"}, false, false, ""},
		{"a new condition", schemas.RiskLow, "a new one", []string{"yes", "confirm"}, false, false, ""},
		{"a denial has no conditions", schemas.RiskHigh, "at least a screen, the code word", []string{"no"}, false, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			p := command(t, "make", c.risk)
			p.Conditions = []string{c.takes}
			b.asks(p)
			var a *schemas.Answer
			for _, text := range c.said {
				b.Nil(a, "answered before %q", text)
				a = b.hears(text)
				b.speaks()
			}
			b.Equal(c.answers, a != nil)
			if a != nil {
				b.Equal(c.allowed, a.OptionID == "allow_once")
				b.Equal(c.code, a.CodeWord)
				b.Equal("v-ann", a.From.UserID)
				b.Equal("d", a.Digest)
			}
		})
	}
}

// These utterances answer nothing, neither after the client has asked nor after it has repeated a yes.
func TestUnclearSpeechDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range append([]string{"", " ", "."}, peopletest.UnclearSpeech...) {
		for _, risk := range []schemas.Risk{schemas.RiskLow, schemas.RiskHigh} {
			b := newBench(t)
			b.asks(command(t, "make", risk))
			b.Nil(b.hears(text), "%q", text)
		}
		b := newBench(t)
		b.asks(command(t, "make", schemas.RiskHigh))
		b.Nil(b.hears("yes"))
		b.speaks()
		b.Nil(b.hears(text), "%q after a yes", text)
	}
}

// After unclear speech the client asks again, but only a few times in a row, so that a conversation in
// the room does not make it speak for ever.
func TestAskingAgainEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.asks(command(t, "make", schemas.RiskHigh))
	for n := range 10 {
		b.Nil(b.hears("the weather is fine"))
		b.Equal(n < maxUnclear, strings.Contains(b.speaks(), "yes or no"), n)
	}
	b.Nil(b.hears("yes"))
	b.Contains(b.speaks(), "confirm", "an answer still counts")
}

// The client's own words, which its microphone may hear, never count. This holds during the client's
// speech, shortly after it, and later for words that repeat a spoken line.
func TestEchoes(t *testing.T) {
	t.Parallel()
	p := command(t, "echo tango whisky", schemas.RiskLow)
	heard := func(change func(*bench, *Utterance)) (*bench, *schemas.Answer) {
		b := newBench(t)
		b.asks(p)
		u := Utterance{Text: "no", Final: true, Ended: b.now}
		change(b, &u)
		return b, b.hear(u, b.now)
	}
	for name, change := range map[string]func(*bench, *Utterance){
		"while it speaks":      func(b *bench, u *Utterance) { u.Ended = b.playTo.Add(-time.Millisecond) },
		"shortly after":        func(b *bench, u *Utterance) { u.Ended = b.playTo.Add(b.margin - time.Millisecond) },
		"begun while it spoke": func(b *bench, u *Utterance) { u.Began = b.playTo.Add(-time.Millisecond) },
		"long before":          func(b *bench, u *Utterance) { u.Ended = b.now.Add(-time.Hour) },
		"a line waits":         func(b *bench, u *Utterance) { b.say(KindNote, "x") },
		"unreported":           func(b *bench, u *Utterance) { b.reports = true },
		"of another request":   func(_ *bench, u *Utterance) { u.About = "p-0" },
		"partial":              func(_ *bench, u *Utterance) { u.Final = false },
	} {
		_, a := heard(change)
		require.Nil(t, a, name)
	}
	_, a := heard(func(b *bench, u *Utterance) { u.Began = b.playTo })
	require.NotNil(t, a)
	_, a = heard(func(b *bench, u *Utterance) {
		b.reports = true
		b.spoken(1, b.playTo.Add(-time.Minute))
		u.Ended = b.playTo.Add(b.margin)
	})
	require.NotNil(t, a, "the client has reported that it has spoken")

	b := newBench(t)
	b.asks(p)
	for _, part := range []string{"Run command: echo tango whisky, in app. Say yes or no.", "run command", "say yes or no", "yes or no", "in app", "tango"} {
		b.Nil(b.hears(part))
		b.Empty(b.speaks(), "an echo of %q is not asked about", part)
	}

	// An agent can make the client speak a code word, as a part of a request. The echo of that
	// word does not count.
	risky := command(t, "echo tango whisky", schemas.RiskHigh)
	risky.Conditions = []string{schemas.ConditionCodeWord}
	b = newBench(t)
	b.asks(risky)
	b.Nil(b.hears("yes"))
	b.speaks()
	b.Nil(b.hears("tango whisky"))
}

// A yes that the person does not confirm in time no longer counts.
func TestAReadBackEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.asks(command(t, "make", schemas.RiskHigh))
	b.Nil(b.hears("yes"))
	b.speaks()
	b.now = b.now.Add(readBackFor)
	b.Nil(b.hears("confirm"))
}

// After three wrong code words a person can only deny the request by voice, even after their
// client has connected again.
func TestCodeWordsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	p := command(t, "make", schemas.RiskHigh)
	p.Conditions = []string{schemas.ConditionCodeWord}
	b := newBench(t)
	for range maxWrong {
		b.asks(p)
		b.Nil(b.hears("yes"))
		b.speaks()
		a := b.hears("wrong word")
		b.NotNil(a)
		b.refused(a, schemas.Errorf(schemas.CodeForbidden, "no"), b.now)
		b.speaks()
	}
	b.Nil(b.hears("yes"))
	b.Contains(b.speaks(), "screen")
	b.Contains(b.asks(p), "screen")
	b.Nil(b.hears("yes"))
	b.False(b.readBack)
	b.speaks()
	b.NotNil(b.hears("no"))
}

// Only a yes that ReadVoice recognises, followed by "confirm", can allow a request.
func FuzzSpeech(f *testing.F) {
	for _, text := range append(peopletest.UnclearSpeech, "yes", "confirm", "no", "repeat", "Yes.", "tango") {
		f.Add(text, "confirm", true)
		f.Add("yes", text, false)
	}
	f.Fuzz(func(t *testing.T, first, second string, low bool) {
		risk := schemas.RiskHigh
		if low {
			risk = schemas.RiskLow
		}
		b := newBench(t)
		b.asks(command(t, "make", risk))
		yes := func(text string) bool { return people.ReadVoice(text).Word == people.Yes }
		a := b.hears(first)
		if a != nil && a.OptionID == "allow_once" {
			b.Fail("allowed without a read-back", "%q", first)
		}
		if a != nil {
			return
		}
		b.speaks()
		if a = b.hears(second); a != nil && a.OptionID == "allow_once" {
			b.True(yes(first) && people.Spoken(second) == "confirm", "%q, %q", first, second)
		}
	})
}
