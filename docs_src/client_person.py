from towline_client import PersonNeeded
from towline_client.blocking import connect

with connect("http://127.0.0.1:4747", "a token") as client:
    session = client.open()
    try:
        said = session.ask("Run the tests.")
    except PersonNeeded as needed:
        for request in needed.permissions:
            session.answer(request, "allow_once")
        said = session.wait_for(needed.accepted)
    print(said)
