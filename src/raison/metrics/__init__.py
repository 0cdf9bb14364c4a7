"""Numbers about explanations: is this what the model goes by, and what people would say?"""
