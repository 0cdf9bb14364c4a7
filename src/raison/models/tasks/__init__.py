"""What each kind of model answers: classes, tags, spans, text; one file a task."""
