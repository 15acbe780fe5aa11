package voice

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// model is the directory of Debian's package pocketsphinx-en-us.
const model = "/usr/share/pocketsphinx/model/en-us/"

// voices are the voices of espeak-ng that speak each phrase.
var voices = []string{"en-us", "en-us+f3"}

// answersAloud lists the phrases with which a person can answer.
var answersAloud = []string{"yes", "approve", "okay", "continue", "no", "reject", "stop", "cancel", "confirm", "repeat"}

// espeak-ng speaks each phrase, and pocketsphinx recognises it. The test fails if a phrase that is no
// answer allows a request, however it was misheard, or if a no allows one. It prints the share of the
// answers that were recognised correctly.
//
// NOD_VOICE_TEST_SPEECH=1 go test ./connectors/people/voice -run SpokenAndHeard -v
func TestSpokenAndHeard(t *testing.T) {
	t.Parallel()
	if os.Getenv("NOD_VOICE_TEST_SPEECH") == "" {
		t.Skip("set NOD_VOICE_TEST_SPEECH=1, with Debian's espeak-ng, sox, pocketsphinx and pocketsphinx-en-us installed")
	}
	var phrases []string
	for _, text := range peopletest.UnclearSpeech {
		if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz' ") == "" && len(text) > 1 && text[0] != '\'' { // a recogniser cannot hear quotation marks
			phrases = append(phrases, text)
		}
	}
	heard := hearAll(t, append(phrases, answersAloud...))
	right := 0
	for _, voice := range voices {
		for _, said := range append(phrases, answersAloud...) {
			text := heard[voice+" "+said]
			for _, risk := range []schemas.Risk{schemas.RiskLow, schemas.RiskHigh} {
				b := newBench(t)
				b.asks(command(t, "make", risk))
				a := b.hears(text)
				allows := a != nil && a.OptionID == "allow_once"
				if people.ReadVoice(said).Word != people.Yes {
					require.False(t, allows, "%s: %q was heard as %q and allowed a request of %s risk", voice, said, text, risk)
				}
				if b.readBack {
					b.speaks()
					a = b.hears(text)
					require.False(t, a != nil && a.OptionID == "allow_once", "%q twice, heard as %q", said, text)
				}
			}
			if text != said {
				t.Logf("%s: %q was heard as %q", voice, said, text)
			}
		}
		for _, said := range answersAloud {
			if people.Spoken(heard[voice+" "+said]) == said {
				right++
			}
		}
	}
	t.Logf("heard right: %d of %d answers; %d other phrases in %d voices allowed nothing", right, len(voices)*len(answersAloud), len(phrases), len(voices))
}

// hearAll speaks each phrase in each voice, and returns the recognised text under the key of the
// voice and the phrase.
func hearAll(t *testing.T, phrases []string) map[string]string {
	dir := t.TempDir()
	run := func(name string, args ...string) {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
	var names, list []string
	for _, voice := range voices {
		for _, phrase := range phrases {
			file := filepath.Join(dir, fmt.Sprint("u", len(list)))
			run("espeak-ng", "-v", voice, "-w", file+".wav", phrase)
			run("sox", file+".wav", "-r", "16000", "-c", "1", "-b", "16", "-e", "signed-integer", "-t", "raw", file+".raw", "pad", "0.4", "0.6")
			names, list = append(names, voice+" "+phrase), append(list, filepath.Base(file))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list"), []byte(strings.Join(list, "\n")+"\n"), 0o600))
	run("pocketsphinx_batch", "-adcin", "yes", "-cepdir", dir, "-cepext", ".raw", "-ctl", filepath.Join(dir, "list"), "-hyp", filepath.Join(dir, "hyp"),
		"-hmm", model+"en-us", "-lm", model+"en-us.lm.bin", "-dict", model+"cmudict-en-us.dict")
	file, err := os.Open(filepath.Join(dir, "hyp"))
	require.NoError(t, err)
	defer file.Close()
	heard := map[string]string{}
	lines := bufio.NewScanner(file)
	for i := 0; lines.Scan(); i++ {
		text, _, _ := strings.Cut(lines.Text(), " (u")
		if strings.HasPrefix(lines.Text(), "(u") {
			text = ""
		}
		heard[names[i]] = text
	}
	require.Len(t, heard, len(names))
	return heard
}
