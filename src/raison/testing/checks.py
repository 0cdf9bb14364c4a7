check_method = check_model = None
