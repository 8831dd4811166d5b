"""The broker process: sockets, threads, signals and the loop around the pure parts.

It sees broker, log, wire and core. Everything here may be thrown away and written for another loop without
touching an answer: what is answered stands in ``broker``, what is kept stands in ``log``.
"""
