"""Attribution methods: small functions of what a model shows (`trace`) and answers (`score`)."""
