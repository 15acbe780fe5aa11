package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

func TestAContainedCallStartsTheRunningProgramByItsPath(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	project, system := top+"/project", top+"/my programs"
	for _, dir := range []string{project, system} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	at := system + "/nod"
	testprogram.Write(t, at, "exit 0")
	running, err := os.Stat(at)
	require.NoError(t, err)
	link := top + "/link"
	require.NoError(t, os.Symlink(at, link))
	for _, p := range []string{at, link} {
		found, err := checkedProgram(p, running, project)
		require.NoError(t, err)
		assert.Equal(t, at, found)
	}

	_, err = checkedProgram(at, running, system)
	assert.ErrorContains(t, err, "lies in the project")
	_, err = checkedProgram(top+"/none", running, project)
	assert.ErrorContains(t, err, "has been moved")
	odd := top + "/a\nb"
	require.NoError(t, os.Rename(at, odd))
	_, err = checkedProgram(odd, running, project)
	assert.ErrorContains(t, err, "characters")
	testprogram.Write(t, at, "exit 1")
	_, err = checkedProgram(at, running, project)
	assert.ErrorContains(t, err, "has been replaced")
}

func TestACallRunsContainedOnlyIfALineCanNameItsPlaces(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(top+"/project", 0o755))
	require.NoError(t, os.Symlink(top+"/project", top+"/link"))
	t.Setenv("XDG_CACHE_HOME", top+"/cache")
	if level, _ := knownSupport(); level == contain.Namespaces {
		possible, program := containable(bus.Place{URL: "tls://a:4222,b", Creds: top + "/agent.nk", DataDir: top}, top+"/project")
		assert.Equal(t, schemas.ContainPossible, possible)
		assert.True(t, filepath.IsAbs(program.Path))
		assert.Equal(t, schemas.NodProgram{Path: program.Path, Data: top, URL: "tls://a:4222,b", Creds: top + "/agent.nk"}, program)
	}
	possible, program := containable(bus.Place{}, top+"/link")
	assert.NotEqual(t, schemas.ContainPossible, possible)
	assert.Empty(t, program)

	for place, says := range map[bus.Place]string{
		{URL: "nats://ann:s3cret@bus:4222"}: "name a key file", {URL: "wss://bus/ws?token=s3cret"}: "name a key file",
		{URL: "nats://bus\n"}: "characters", {Creds: "/keys/a\nb"}: "characters",
	} {
		possible, program := containable(place, top+"/project")
		assert.Contains(t, possible, says)
		assert.NotContains(t, possible, "s3cret")
		assert.Empty(t, program)
	}

	_, err = runSpec(schemas.Container{Project: top + "/project", Dir: top + "/project"}, []string{"true"}, "S")
	require.NoError(t, err)
	_, err = runSpec(schemas.Container{Project: top + "/link", Dir: top + "/link"}, []string{"true"}, "S")
	assert.ErrorContains(t, err, "leads to")
}
