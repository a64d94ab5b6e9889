# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a coding assistant has of torsh: a server of the Model Context Protocol (torsh mcp), prompts and a plug-in.

Recordings come from programs that nobody vouches for, and questions from a model that has read them: the server reads
recordings below one folder and nothing else, writes nothing there, and bounds what it answers.
"""
