"""The parts of an audit of attention: importance, influence, adversaries."""
