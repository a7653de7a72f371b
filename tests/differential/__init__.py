"""The same script over the twin and over JetStream: what was seen must be the same.

A script is drawn by hypothesis and played twice: first over a real server, which dictates the
times, and then over the twin, which repeats each step at the virtual time at which the server
was given it. Both players write down what they were answered; `compare` wants it equal. What
may differ for good reasons is said in `normal.py` and nowhere else.
"""
