package voice

import (
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// readBackFor is how long the client waits for "confirm" after it has repeated a person's yes
	// (the read-back). After this time the yes no longer counts.
	readBackFor = 30 * time.Second
	// maxUnclear is how often in a row the client asks a person to repeat unclear words. The client is
	// then silent until it hears an answer, so that a conversation in the room does not make it speak all
	// the time.
	maxUnclear = 3
	// maxWrong is the number of wrong code words after which a request cannot be allowed by voice.
	maxWrong = 3
)

// Words that control the dialogue. By themselves they answer no request.
const (
	wordConfirm = "confirm"
	wordRepeat  = "repeat"
)

// Utterance is a transcript of a person's speech.
type Utterance struct {
	Text string
	// Final is false for a partial transcript, which a later transcript replaces.
	Final bool
	// Began and Ended are the times at which the person began and finished speaking. Began is zero if the
	// client does not report the beginning. Ended is the time at which the transcript arrived if the
	// client does not report the end.
	Began, Ended time.Time
	// About is the id of the request that the person was asked about, if the client gives it.
	About string
}

// dialogue decides what to say to one person, and which of the person's words answer a request.
// It asks about one request at a time. It is not safe for concurrent use, and does not call nod.
type dialogue struct {
	*mouth
	from     schemas.From
	open     *schemas.Prompt // the request that the person is being asked about, as it was spoken; nil if there is no such request
	words    speech          // the sentences about the request in open
	readBack bool            // the person said yes and must confirm the yes
	since    time.Time       // the time at which the client will have spoken the read-back
	unclear  int             // how many times in a row the client has asked again
	overlaid int             // how often in a row the person spoke at the same time as the client
	wrong    map[string]int  // the number of wrong code words, by the key of the request
}

func (d *dialogue) say(kind LineKind, text string) { d.mouth.say(kind, text, d.open) }

func (d *dialogue) ask(p schemas.Prompt) {
	d.open, d.words, d.readBack, d.unclear = &p, speechOf(&p), false, 0
	d.overlaid = 0
	if d.wrong[p.Key()] >= maxWrong {
		d.words.deny = onScreen
	}
	d.say(KindQuestion, d.words.question(&p))
}

// end stops asking about the open request. The client then speaks the sentence in text, which is about
// the request's outcome.
func (d *dialogue) end(text string) {
	d.say(KindOutcome, text)
	d.open, d.readBack, d.unclear, d.overlaid = nil, false, 0, 0
}

// hear returns the answer in an utterance, if the utterance answers the open request. Otherwise hear
// returns nil, and the client may say something about the utterance.
func (d *dialogue) hear(u Utterance, now time.Time) *schemas.Answer {
	text := people.Spoken(u.Text)
	words := plainText(text)
	said := people.ReadVoice(u.Text)
	command := said.Word != people.Unclear || text == wordConfirm || text == wordRepeat
	switch {
	case !u.Final || len(words) == 0:
		return nil
	case !command && d.echoes(words):
		return nil // the utterance repeats the client's own words
	case d.overlaps(&u):
		if d.overlaid++; command && d.overlaid <= maxUnclear { // the person may have answered, or the client may have heard itself
			d.say(KindNote, sayAgain)
		}
		return nil
	case d.open == nil:
		if command && d.unclear < maxUnclear {
			d.unclear++
			d.say(KindNote, nothingWaits)
		}
		return nil
	case u.About != "" && u.About != d.open.PendingID:
		return nil // the utterance is about an earlier request
	case d.readBack && now.Sub(d.since) > readBackFor:
		d.readBack = false
	}
	d.overlaid = 0
	switch {
	case text == wordRepeat:
		d.repeat(now)
		return nil
	case said.Word == people.No:
		return d.answer(said, "")
	case d.readBack:
		return d.confirm(text, said, now)
	case said.Word == people.Yes:
		d.yes(now)
		return nil
	}
	d.notUnderstood(unclear + " " + d.words.choices())
	return nil
}

func (d *dialogue) repeat(now time.Time) {
	d.unclear = 0
	if d.readBack {
		d.sayReadBack(now)
		return
	}
	d.say(KindQuestion, d.words.question(d.open))
}

// yes handles a yes. It reads the yes back, even for a low risk, because the speech recogniser may have
// misheard another word as yes. If the request can only be denied by voice, the client says so instead.
func (d *dialogue) yes(now time.Time) {
	if d.words.deny != "" {
		d.notUnderstood("Nothing changed. " + d.words.choices())
		return
	}
	d.unclear = 0
	d.sayReadBack(now)
}

func (d *dialogue) sayReadBack(now time.Time) {
	d.readBack = true
	d.say(KindReadBack, d.words.readBack())
	d.since = now.Add(playTime(d.words.readBack(), d.rate))
}

// confirm handles the reply to a read-back. Any reply except the confirmation cancels the yes. If
// the code word is needed, the reply must be that word.
func (d *dialogue) confirm(text string, said people.Utterance, now time.Time) *schemas.Answer {
	yes := people.Utterance{Word: people.Yes}
	switch {
	case d.words.code && (text == wordConfirm || said.Word == people.Yes):
		d.notUnderstood(askForCode)
		return nil
	case d.words.code:
		return d.answer(yes, text)
	case text == wordConfirm:
		return d.answer(yes, "")
	}
	d.readBack = false
	d.notUnderstood(stopConfirm + " " + d.words.choices())
	return nil
}

// notUnderstood makes the client speak the sentence in text, which asks the person again. If the client
// has already asked maxUnclear times in a row, it says nothing.
func (d *dialogue) notUnderstood(text string) {
	if d.unclear++; d.unclear <= maxUnclear {
		d.say(KindNote, text)
	}
}

// answer converts the utterance said to an answer to the open request. It returns nil if the request does
// not accept that answer.
func (d *dialogue) answer(said people.Utterance, code string) *schemas.Answer {
	d.unclear = 0
	a, ok := said.Answer(d.open, d.from)
	if !ok {
		d.notUnderstood(onScreen + " " + sayNo)
		return nil
	}
	a.CodeWord = code
	return &a
}

// refused tells the person that nod refused an answer to the open request, which is still
// pending. It also counts wrong code words.
func (d *dialogue) refused(a *schemas.Answer, e *schemas.Error, now time.Time) {
	d.readBack = false
	if e.Code != schemas.CodeForbidden || a.CodeWord == "" {
		d.say(KindNote, people.Refusal(e, now))
		return
	}
	d.wrong[a.Key()]++
	if d.wrong[a.Key()] >= maxWrong {
		d.words.deny = onScreen
		d.say(KindNote, noMoreCodes+" "+sayNo)
		return
	}
	d.say(KindNote, notCode+" "+sayYesOrNo)
}
