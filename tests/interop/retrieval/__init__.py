"""The recipes for LangChain and LlamaIndex, together with both."""
