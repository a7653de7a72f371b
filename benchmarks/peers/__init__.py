"""What a user would pick instead: other actor systems and task queues, each behind one face.

Peers come with the extra `bench` and are imported where they are used; the runtime needs none.
"""
