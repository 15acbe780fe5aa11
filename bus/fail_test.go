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

// If a retry may succeed, an error is sent as UNAVAILABLE, after which callers try again.
func TestErrorsAreSentWithTheirCodes(t *testing.T) {
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
		errors.Join(errors.New("the inside"), ErrUnreadable):  schemas.CodeInternal,
		errors.Join(nil, nats.ErrTimeout, errors.New("both")): schemas.CodeUnavailable,
	} {
		told := toWireError(fmt.Errorf("do something: %w", err))
		require.Equal(t, code, told.Code, "%v", err)
		if code == schemas.CodeInternal {
			require.NotContains(t, told.Message, "do something")
		}
	}
}
