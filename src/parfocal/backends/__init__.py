"""One object per framework behind one protocol: the only place that imports a framework.

``registry`` finds the backend of an object, ``protocol`` says what every backend can do,
``vocabulary`` lists the names that have one spelling on every side.
"""
