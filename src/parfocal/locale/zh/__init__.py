"""Chinese: the catalogue LC_MESSAGES/parfocal.po, and tables of what registers of the code say."""
