print("gifreel")
