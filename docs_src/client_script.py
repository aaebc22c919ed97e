from towline_client.blocking import connect

with connect("http://127.0.0.1:4747", "a token") as client:
    session = client.open()
    print(session.ask("What time is it?"))
