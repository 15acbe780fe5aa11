package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// An error after which a retry may succeed is sent as UNAVAILABLE, so that callers try again.
func TestErrorsAreSentWithTheirCodes(t *testing.T) {
	t.Parallel()
	for err, code := range map[error]schemas.Code{
		schemas.Errorf(schemas.CodeStale, "look again"):       schemas.CodeStale,
		context.DeadlineExceeded:                              schemas.CodeUnavailable,
		ErrUnknown:                                            schemas.CodeUnavailable,
		ErrMoved:                                              schemas.CodeUnavailable,
		nats.ErrNoResponders:                                  schemas.CodeUnavailable,
		nats.ErrConnectionReconnecting:                        schemas.CodeUnavailable,
		jetstream.ErrNoStreamResponse:                         schemas.CodeUnavailable,
		&jetstream.APIError{Code: 503, ErrorCode: 10008}:      schemas.CodeUnavailable,
		&jetstream.APIError{Code: 400, ErrorCode: 10003}:      schemas.CodeInternal,
		errors.New("the inside"):                              schemas.CodeInternal,
		errors.Join(errors.New("the inside"), ErrUnreadable):  schemas.CodeUnavailable,
		errors.Join(nil, nats.ErrTimeout, errors.New("both")): schemas.CodeUnavailable,
	} {
		told := toWireError(fmt.Errorf("do something: %w", err))
		require.Equal(t, code, told.Code, "%v", err)
		if code == schemas.CodeInternal {
			require.NotContains(t, told.Message, "do something")
		}
	}
}

// electing is a stream that is still electing its leader: its first two calls find no leader.
type electing struct {
	jetstream.Stream
	calls int
}

func (s *electing) Info(context.Context, ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if s.calls++; s.calls <= 2 {
		return nil, &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}
	}
	return &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: 7}}, nil
}

func TestNewestWaitsForALeader(t *testing.T) {
	t.Parallel()
	b := &Bucket{kvStream: &kvStream{name: "KV_test", stream: &electing{}}}
	newest, err := b.Newest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 7, newest)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.stream = &electing{}
	_, err = b.Newest(ended)
	require.ErrorIs(t, err, ErrUnknown)
}
