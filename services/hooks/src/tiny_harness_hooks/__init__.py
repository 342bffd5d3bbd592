"""The hook executor service. Its host arrives with the hook contract; nothing runs hooks yet."""
