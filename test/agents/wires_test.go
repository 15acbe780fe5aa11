package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
)

// This file implements tool calls in the APIs of three model providers. An answer is a stream of
// events, or one JSON value if the agent asks for one.

type anthropicRequest struct {
	Stream bool `json:"stream"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func readAnthropic(in anthropicRequest) (t turn) {
	t.whole = !in.Stream
	for _, tool := range in.Tools {
		t.tools = append(t.tools, tool.Name)
	}
	for _, message := range in.Messages {
		var blocks []json.RawMessage
		if json.Unmarshal(message.Content, &blocks) != nil {
			continue // in this case the content is a plain string
		}
		for _, block := range blocks {
			var kind struct {
				Type string `json:"type"`
			}
			if json.Unmarshal(block, &kind) == nil && kind.Type == "tool_result" {
				t.results = append(t.results, string(block))
			}
		}
	}
	return t
}

func writeAnthropic(w io.Writer, t turn, calls []call) {
	stop, content := "end_turn", []map[string]any{{"type": "text", "text": "Done."}}
	if len(calls) > 0 {
		stop, content = "tool_use", nil
	}
	for i, c := range calls {
		content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%02d", len(t.results)+i+1), "name": c.tool, "input": c.input})
	}
	message := map[string]any{
		"id": fmt.Sprintf("msg_%02d", len(t.results)+1), "type": "message", "role": "assistant", "model": "fake", "content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}
	if t.whole {
		_, _ = io.WriteString(w, text(message)) // if the write fails, the agent gets no answer, and the test fails
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	event(w, "message_start", map[string]any{"type": "message_start", "message": message})
	for i, block := range content {
		delta := map[string]any{"type": "text_delta", "text": block["text"]}
		if block["type"] == "tool_use" {
			delta = map[string]any{"type": "input_json_delta", "partial_json": text(block["input"])}
			block["input"] = map[string]any{}
		} else {
			block["text"] = ""
		}
		event(w, "content_block_start", map[string]any{"type": "content_block_start", "index": i, "content_block": block})
		event(w, "content_block_delta", map[string]any{"type": "content_block_delta", "index": i, "delta": delta})
		event(w, "content_block_stop", map[string]any{"type": "content_block_stop", "index": i})
	}
	event(w, "message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": message["usage"]})
	event(w, "message_stop", map[string]any{"type": "message_stop"})
}

type openAIRequest struct {
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Input []json.RawMessage `json:"input"`
}

func readOpenAI(in openAIRequest) (t turn) {
	for _, tool := range in.Tools {
		t.tools = append(t.tools, tool.Name)
	}
	for _, item := range in.Input {
		var kind struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(item, &kind) == nil && kind.Type == "function_call_output" {
			t.results = append(t.results, string(item))
		}
	}
	return t
}

func writeOpenAI(w io.Writer, _ turn, calls []call) {
	response := map[string]any{"id": "resp_01", "created_at": 1, "model": "fake", "output": []any{}}
	event(w, "response.created", map[string]any{"type": "response.created", "response": response})
	if len(calls) == 0 {
		writeOpenAIText(w, "Done.")
	}
	for i, c := range calls {
		item := map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%02d", i+1), "call_id": fmt.Sprintf("call_%02d", i+1), "name": c.tool, "arguments": "", "status": "in_progress",
		}
		event(w, "response.output_item.added", map[string]any{"type": "response.output_item.added", "output_index": i, "item": item})
		item["arguments"], item["status"] = text(c.input), "completed"
		event(w, "response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	response["usage"] = map[string]any{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
		"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
	event(w, "response.completed", map[string]any{"type": "response.completed", "response": response})
}

func writeOpenAIText(w io.Writer, said string) {
	item := map[string]any{"type": "message", "id": "msg_01", "role": "assistant", "status": "in_progress", "content": []any{}}
	event(w, "response.output_item.added", map[string]any{"type": "response.output_item.added", "output_index": 0, "item": item})
	event(w, "response.output_text.delta", map[string]any{"type": "response.output_text.delta", "item_id": "msg_01", "output_index": 0, "content_index": 0, "delta": said})
	item["content"], item["status"] = []any{map[string]any{"type": "output_text", "text": said, "annotations": []any{}}}, "completed"
	event(w, "response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item})
}

type geminiRequest struct {
	Tools []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Contents []struct {
		Parts []struct {
			Response json.RawMessage `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
}

func readGemini(in geminiRequest) (t turn) {
	for _, tool := range in.Tools {
		for _, f := range tool.Functions {
			t.tools = append(t.tools, f.Name)
		}
	}
	for _, content := range in.Contents {
		for _, part := range content.Parts {
			if part.Response != nil {
				t.results = append(t.results, string(part.Response))
			}
		}
	}
	return t
}

func writeGemini(w io.Writer, t turn, calls []call) {
	parts := []any{map[string]any{"text": "Done."}}
	if len(calls) > 0 {
		parts = nil
	}
	for _, c := range calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"name": c.tool, "args": c.input}})
	}
	out := map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": parts}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if t.whole {
		_, _ = io.WriteString(w, text(out)) // if the write fails, the agent gets no answer, and the test fails
		return
	}
	event(w, "", out)
}
